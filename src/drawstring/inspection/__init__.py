"""Reports about a table and about a scan plan, as values: for the command line, notebooks and programs."""

from drawstring.inspection.plan_report import PlanReport, SkippedGroup, SkippedSlice, TaskReport
from drawstring.inspection.problems import Problem
from drawstring.inspection.table_report import (
    FieldChange,
    IndexReport,
    InstantReport,
    SchemaChange,
    SliceReport,
    TableReport,
)

__all__ = [
    "FieldChange",
    "IndexReport",
    "InstantReport",
    "PlanReport",
    "Problem",
    "SchemaChange",
    "SkippedGroup",
    "SkippedSlice",
    "SliceReport",
    "TableReport",
    "TaskReport",
]
