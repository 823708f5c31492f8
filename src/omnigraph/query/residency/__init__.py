"""What a process keeps of a graph in memory: key dictionaries, rows, columns and adjacency of pinned versions."""

from omnigraph.query.residency.budget import MemoryBudget
from omnigraph.query.residency.delta import RowDelta
from omnigraph.query.residency.residency import Residency

__all__ = ["MemoryBudget", "Residency", "RowDelta"]
