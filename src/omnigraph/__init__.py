"""OmniGraph: a typed property graph on Lance tables, with Git-style branches and one query language.

    import omnigraph

    with omnigraph.init("atlas", schema="node Paper { doi: String @key  title: String }") as graph:
        graph.mutate('query add() { insert Paper { doi: "10.1/x", title: "A" } }')
        print(graph.query("query all() { match { $p: Paper } return { $p.title } }"))

The storage engine is loaded with the first `open` or `init`, not with this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph import errors
from omnigraph._version import __version__
from omnigraph.errors import OmnigraphError, OutcomeUnknown

if TYPE_CHECKING:
    from omnigraph.embedded import init, open
    from omnigraph.engine.graph import Graph
    from omnigraph.engine.result import Result

__all__ = ["Graph", "OmnigraphError", "OutcomeUnknown", "Result", "__version__", "errors", "init", "open"]

_LAZY = {
    "Graph": ("omnigraph.engine.graph", "Graph"),
    "Result": ("omnigraph.engine.result", "Result"),
    "init": ("omnigraph.embedded", "init"),
    "open": ("omnigraph.embedded", "open"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _LAZY[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
