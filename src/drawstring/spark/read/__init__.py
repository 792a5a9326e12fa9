"""The planner's answers to the bridge about reading: tables, plans, push-downs, streams."""
