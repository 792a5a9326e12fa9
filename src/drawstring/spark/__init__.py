"""The only package that knows Spark: sessions, the planner behind the bridge, workers beside executors."""

from drawstring.spark.session.builder import attach, configure, session

__all__ = ["attach", "configure", "session"]
