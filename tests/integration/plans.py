"""What a DataFrame's plan tells."""

from __future__ import annotations

USE_V2 = "hoodie.datasource.read.use.dsv2"


def plan_of(frame) -> str:
    """The physical plan as text."""
    return str(frame._jdf.queryExecution().executedPlan().toString())


def scan_metrics(frame) -> dict[str, int]:
    """The metrics of the scan of a DataFrame that has run."""
    plan = frame._jdf.queryExecution().executedPlan()
    while plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.executedPlan()
    while plan.children().nonEmpty():
        plan = plan.children().head()
    found = plan.metrics().iterator()
    metrics = {}
    while found.hasNext():
        entry = found.next()
        metrics[entry._1()] = entry._2().value()
    return metrics
