"""One graph: snapshots, the write path, load, mutate, branches, merge, schema change, export. One operation, one file."""
