"""What rows are grouped by: for each group key numbers or values that are equal exactly where the key is.

A key that is a property of a node is looked at once for each node and not once for each assignment, of which there may be
many more; one that names the node is the node. Order is no business of this module.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.lang.query.typed import Expr, NodeRef, PropertyRef, SystemRef
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.types import INTEGERS
from omnigraph.query.bindings import Bindings
from omnigraph.query.expressions import evaluated_array
from omnigraph.query.match import Matching
from omnigraph.query.relational.keys import comparable
from omnigraph.query.rowcolumns import AssignmentColumns

_REPEATS = 2  # so many assignments a node, and looking at nodes costs less


def group_key(expr: Expr, matching: Matching, columns: AssignmentColumns) -> pa.Array:
    """One value for each assignment. Raises StorageFailure."""
    vertices = columns.bindings.nodes.get(expr.var) if isinstance(expr, NodeRef | PropertyRef | SystemRef) else None
    if vertices is None or not isinstance(expr, NodeRef | PropertyRef | SystemRef):
        return comparable(evaluated_array(expr, columns, matching.scope))
    type_name = matching.types[expr.var]
    if isinstance(expr, NodeRef) or _names_node(expr, matching.snapshot.catalog.nodes[type_name]):
        return pa.array(vertices)
    nodes = matching.snapshot.nodes(type_name)
    if len(vertices) <= _REPEATS * len(nodes):
        return comparable(evaluated_array(expr, columns, matching.scope))
    seen = np.zeros(len(nodes.dictionary), bool)
    seen[vertices] = True
    each = np.flatnonzero(seen).astype(np.int32)
    of_nodes = matching.columns(Bindings(len(each), {expr.var: each}))
    values = comparable(evaluated_array(expr, of_nodes, matching.scope))
    number = np.zeros(len(seen), np.int32)
    number[each] = values.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    return pa.array(number[vertices])


def _names_node(expr: PropertyRef | SystemRef, entity: NodeType) -> bool:
    """Whether no two nodes agree in it: the id, or a key of one member whose equal values are spelled alike in the id."""
    if isinstance(expr, SystemRef):
        return expr.field == "id"
    return entity.key == (expr.name,) and (expr.type.is_text or expr.type.scalar in INTEGERS)
