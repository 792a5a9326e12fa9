"""Turning one read task into Arrow batches, or into a merge plan."""

from drawstring.reading.task_reader import merge_plan_for, read_task

__all__ = ["merge_plan_for", "read_task"]
