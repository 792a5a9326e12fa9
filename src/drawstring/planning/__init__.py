"""From a pinned snapshot to a scan plan: which file slices are read, how, and why others are skipped."""
