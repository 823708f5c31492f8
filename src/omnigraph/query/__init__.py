"""Plan and run a checked query on one pinned snapshot."""
