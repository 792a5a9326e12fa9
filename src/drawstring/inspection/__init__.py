"""What a table looks like from above, as values: for the command line, for notebooks, for programs."""

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
