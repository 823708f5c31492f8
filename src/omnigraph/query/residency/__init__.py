"""What a process keeps of a graph in memory: key dictionaries, rows, columns and adjacency of pinned versions."""

from omnigraph.query.residency.delta import RowDelta
from omnigraph.query.residency.residency import Residency
from omnigraph.tables.budget import MemoryBudget

__all__ = ["MemoryBudget", "Residency", "RowDelta"]
