"""What a search asks of an index, and of which: one that was built with the table, one made in memory, or none.

Dataset metadata may be read for it, no row and no index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from omnigraph.lang.query.typed import Bm25, Fused, Nearest, Param, Rank, ReadQuery, TextSearch
from omnigraph.lang.query.typed_text import typed_text
from omnigraph.query.expressions import Scope
from omnigraph.query.limits import QuerySettings
from omnigraph.query.plan import NodeTests
from omnigraph.query.search.ranks import ranked_property
from omnigraph.query.search.vectors import first_fetch, uses_index
from omnigraph.query.snapshot import Snapshot

Access = Literal["full", "id_lookup", "vector_index", "fulltext_index", "scratch_index"]


@dataclass(frozen=True, slots=True)
class Searches:
    """Of one query on one state, under these settings; `scope` holds the parameters that are known."""

    query: ReadQuery
    snapshot: Snapshot
    settings: QuerySettings
    scope: Scope

    def access(self, node: NodeTests, ranked: dict[str, Any]) -> Access:
        """How the nodes of a scan are found. `ranked`: what `ranked` says of it; an index that ranks all of them finds them."""
        if node.lookup is not None:
            return "id_lookup"
        searched = [each for each in node.filters if isinstance(each, TextSearch)]
        if searched and self._is_large(node.type_name) and all(each.call == "fuzzy" for each in searched):
            return "full"  # the column goes by, no index is asked
        if searched:
            return self._text_access(node.type_name)
        told: Any = ranked.get("ranked")
        return "vector_index" if isinstance(told, dict) and told["access"] == "vector_index" else "full"

    def ranked(self, var: str, type_name: str, expected: float) -> dict[str, Any]:
        """What is asked of the node that the query ranks: one rank, or the arms of a fused one; nothing of another node.

        `fetch` are the rows that an index of vectors is first asked for, if as many nodes are left as is expected; null
        where every node that is left gets its rank.
        """
        rank = self.query.order[0].expr if self.query.order else None
        if not isinstance(rank, Rank) or ranked_property(rank).var != var:
            return {}
        if isinstance(rank, Fused):
            return {"ranked": [self._arm(arm, type_name, expected) for arm in (rank.first, rank.second)]}
        return {"ranked": self._arm(rank, type_name, expected)}

    def _arm(self, rank: Nearest | Bm25, type_name: str, expected: float) -> dict[str, Any]:
        told = {"property": ranked_property(rank).name, "query": typed_text(rank.query)}
        if isinstance(rank, Bm25):
            access = self._text_access(type_name)
            return {"kind": "bm25", **told, "access": access, "fetch": None, "nprobes": None}
        fetch = self._fetch(rank, type_name, expected)
        access = "full" if fetch is None else "vector_index"
        return {
            "kind": "nearest",
            **told,
            "access": access,
            "fetch": fetch,
            "nprobes": None if fetch is None else self.settings.probes,
        }

    def _fetch(self, rank: Nearest, type_name: str, expected: float) -> int | None:
        entity = self.snapshot.catalog.nodes[type_name]
        rows, wanted = self.snapshot.row_count(entity.id), self._wanted()
        asked = max(min(int(expected), rows), 1)
        if (
            self.settings.probes is None
            or not wanted
            or not uses_index(rows, asked, rank.vector.type.dimension or 0, wanted)
        ):
            return None
        found = entity.property(rank.vector.name)
        table = self.snapshot.table(entity.id)
        if found is None or table is None or not table.search_indexes.usable(found.column, "vector"):
            return None
        return first_fetch(rows, asked, wanted)

    def _wanted(self) -> int | None:
        """The limit, if it is known."""
        limit = self.query.limit
        return cast("int | None", self.scope.params.get(limit.name)) if isinstance(limit, Param) else limit

    def _text_access(self, type_name: str) -> Access:
        """Which index says where words stand. Where none is built that would be needed, the query is refused."""
        return "fulltext_index" if self._is_large(type_name) else "scratch_index"

    def _is_large(self, type_name: str) -> bool:
        return self.snapshot.row_count(self.snapshot.catalog.nodes[type_name].id) > self.settings.fts_scratch_rows
