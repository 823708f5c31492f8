"""Where things lie under the storage root of a cluster (cluster.md 2). Pure text.

<root>/__cluster/          what belongs to the cluster as a whole
<root>/graphs/<id>.omni/   one graph each
"""

from __future__ import annotations

import re

CLUSTER_FOLDER = "__cluster"
GRAPHS_FOLDER = "graphs"
GRAPH_SUFFIX = ".omni"

_GRAPH_ID = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_RESERVED = frozenset("policies healthz readyz openapi graphs discovery mcp cluster metrics console whoami".split())


def is_graph_id(text: str) -> bool:
    """Whether a graph may be called so.

    >>> is_graph_id("atlas"), is_graph_id("metrics"), is_graph_id("1st")
    (True, False, False)
    """
    return _GRAPH_ID.fullmatch(text) is not None and text not in _RESERVED


def graph_root(storage: str, graph_id: str) -> str:
    """The root of one graph of a cluster.

    >>> graph_root("s3://harbor/quay", "atlas")
    's3://harbor/quay/graphs/atlas.omni'
    """
    return f"{storage.rstrip('/')}/{GRAPHS_FOLDER}/{graph_id}{GRAPH_SUFFIX}"


def graph_id_of(folder: str) -> str | None:
    """The id of the graph in a folder below `graphs/`; None if no graph lies in such a folder.

    >>> graph_id_of("atlas.omni"), graph_id_of("atlas"), graph_id_of("a b.omni")
    ('atlas', None, None)
    """
    graph_id = folder.removesuffix(GRAPH_SUFFIX)
    return graph_id if graph_id != folder and is_graph_id(graph_id) else None
