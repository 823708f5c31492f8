"""Upkeep: what changes how a graph is stored and nothing of what it holds."""
