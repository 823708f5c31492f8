"""Mutations: statements of a query run on a working state, which becomes one commit."""

from omnigraph.engine.mutate.operation import MutateOperation

__all__ = ["MutateOperation"]
