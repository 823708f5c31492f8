"""The nodes that one variable can be, judged by its own tests: named by id or key, or found by filters.

Knows one type and its tests; nothing of hops or of other variables.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.query.expressions import Scope, constant_value, true_rows
from omnigraph.query.keys import node_id, node_ids
from omnigraph.query.plan import Lookup, NodeTests
from omnigraph.query.residency.nodes import NodeRows
from omnigraph.query.rowcolumns import SomeVertices, WholeType
from omnigraph.query.snapshot import Snapshot


def candidate_vertices(snapshot: Snapshot, scope: Scope, tests: NodeTests) -> np.ndarray:
    """The vertices of all nodes that pass, each once."""
    nodes = snapshot.nodes(tests.type_name)
    if tests.lookup is not None:
        vertices = looked_up(snapshot, scope, tests)
        return vertices[passing(snapshot, scope, tests, vertices)]
    if not tests.filters:
        return nodes.vertices()
    return nodes.vertices_of(_scanned_rows(snapshot, scope, tests))


def candidate_rows(snapshot: Snapshot, scope: Scope, tests: NodeTests) -> np.ndarray:
    """As `candidate_vertices`, but row numbers of the pinned version."""
    nodes = snapshot.nodes(tests.type_name)
    return nodes.rows_of(candidate_vertices(snapshot, scope, tests))


def _scanned_rows(snapshot: Snapshot, scope: Scope, tests: NodeTests) -> np.ndarray:
    entity = snapshot.catalog.nodes[tests.type_name]
    nodes = snapshot.nodes(tests.type_name)
    found = [np.empty(0, np.int64)]
    for tail in (False, True):
        columns = WholeType(entity, nodes, tail)
        if columns.length == 0:
            continue
        mask = true_rows(tests.filters[0], columns, scope)
        for each in tests.filters[1:]:
            mask = mask & true_rows(each, columns, scope)
        found.append(columns.first + np.flatnonzero(mask))
    rows = np.concatenate(found)
    return rows[nodes.current(rows)] if nodes.overlay_size else rows


def passing(snapshot: Snapshot, scope: Scope, tests: NodeTests, vertices: np.ndarray) -> np.ndarray:
    """Which of these live vertices satisfy the filters; a look-up is not asked again. Repeats are allowed."""
    if not tests.filters or len(vertices) == 0:
        return np.ones(len(vertices), bool)
    nodes = snapshot.nodes(tests.type_name)
    if len(vertices) > 2 * len(nodes):  # many repeats: every node once, then by number
        passes = np.zeros(len(nodes.dictionary), bool)
        passes[nodes.vertices_of(_scanned_rows(snapshot, scope, tests))] = True
        return passes[vertices]
    columns = SomeVertices(snapshot.catalog.nodes[tests.type_name], nodes, vertices)
    mask = true_rows(tests.filters[0], columns, scope)
    for each in tests.filters[1:]:
        mask = mask & true_rows(each, columns, scope)
    return mask


# --- by id


def looked_up(snapshot: Snapshot, scope: Scope, tests: NodeTests) -> np.ndarray:
    """The live vertices that the look-up of a variable names, each once."""
    assert tests.lookup is not None
    nodes: NodeRows = snapshot.nodes(tests.type_name)
    vertices = nodes.dictionary.find(_ids(snapshot, scope, tests, tests.lookup))
    if len(vertices) > 1:
        vertices = np.unique(vertices)
    return vertices[nodes.rows_of(vertices) >= 0]


def _ids(snapshot: Snapshot, scope: Scope, tests: NodeTests, lookup: Lookup) -> pa.Array:
    if lookup.ids is not None:
        given = constant_value(lookup.ids, scope)
        return pa.array((given or []) if lookup.many else [given], pa.string()).drop_null()
    entity = snapshot.catalog.nodes[tests.type_name]
    properties = [entity.property(name) for name in entity.key]
    types = [each.type for each in properties if each is not None]
    if not lookup.many:
        return pa.array([node_id(types, [constant_value(each, scope) for each in lookup.key])], pa.string()).drop_null()
    return node_ids(types[0], constant_value(lookup.key[0], scope) or [])
