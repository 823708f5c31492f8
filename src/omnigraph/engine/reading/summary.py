"""What a graph holds: tables and counts of one state, in words for people and for programs. No table is opened."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from omnigraph.engine.core import GraphCore
from omnigraph.engine.reading.selectors import Selector, pinned
from omnigraph.engine.receipts import DatasetSummary, Summary
from omnigraph.escaping import safe_text
from omnigraph.manifest.codec import FORMAT
from omnigraph.query.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """One graph at one state."""

    graph_id: str
    uri: str
    head_commit_id: str
    branches: tuple[str, ...]
    nodes: dict[str, int]
    edges: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        return {
            "graph_id": self.graph_id,
            "uri": self.uri,
            "head_commit_id": self.head_commit_id,
            "branch_count": len(self.branches),
            "branches": list(self.branches),
            "types": {"nodes": list(self.nodes), "edges": list(self.edges)},
            "counts": {
                **{f"node:{n}": c for n, c in self.nodes.items()},
                **{f"edge:{n}": c for n, c in self.edges.items()},
            },
        }

    def _repr_html_(self) -> str:
        return self.html()

    def html(self) -> str:
        rows = "".join(
            f"<tr><td>{kind}</td><td>{html.escape(name)}</td><td style='text-align:right'>{count:,}</td></tr>"
            for kind, types in (("node", self.nodes), ("edge", self.edges))
            for name, count in types.items()
        )
        return f"<p>{html.escape(safe_text(self.uri))} at {html.escape(safe_text(self.head_commit_id))}</p><table>{rows}</table>"


def graph_info(core: GraphCore, selector: Selector, default_branch: str) -> GraphInfo:
    """Raises StorageFailure and the errors of the selector."""
    state = pinned(core, selector, default_branch)
    snapshot = state.snapshot
    return GraphInfo(
        graph_id=core.graph_id,
        uri=core.store.uri,
        head_commit_id=state.commit_id,
        branches=tuple(head.branch for head in core.heads.live()),
        nodes={name: snapshot.row_count(entity.id) for name, entity in snapshot.catalog.nodes.items()},
        edges={name: snapshot.row_count(entity.id) for name, entity in snapshot.catalog.edges.items()},
    )


def summary(core: GraphCore, selector: Selector, default_branch: str) -> Summary:
    """The tables of one state (interfaces.md 9.8), nodes before edges, by name."""
    state = pinned(core, selector, default_branch)
    manifest = state.snapshot.manifest
    return Summary(
        graph_branch=manifest.branch,
        graph_commit_id=state.commit_id,
        graph_manifest_version=manifest.version,
        internal_schema_version=FORMAT,
        datasets=tuple(_datasets(state.snapshot)),
    )


def _datasets(snapshot: Snapshot) -> list[DatasetSummary]:
    found: list[DatasetSummary] = []
    for kind in (snapshot.catalog.nodes, snapshot.catalog.edges):
        for name in sorted(kind):
            entity = kind[name]
            pin = snapshot.pin(entity.id)
            found.append(
                DatasetSummary(
                    entity_kind=entity.kind,
                    type_name=name,
                    dataset_path=None if pin is None else pin.path,
                    published_dataset_version=None if pin is None else str(pin.version),
                    entity_count=snapshot.row_count(entity.id),
                )
            )
    return found
