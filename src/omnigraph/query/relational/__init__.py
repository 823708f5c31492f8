"""Grouping, aggregating and ordering of rows: the tail of every read, behind one interface with two engines."""
