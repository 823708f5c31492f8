"""Parsed and checked queries, kept by text and schema: the same text against the same schema is checked once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import lru_cache

from omnigraph.lang.query.check import check
from omnigraph.lang.query.check import signatures as signatures_of
from omnigraph.lang.query.typed import Signature, TypedQuery
from omnigraph.lang.schema.catalog import Catalog

_KEPT = 256


@lru_cache(_KEPT)
def signatures(source: str) -> tuple[Signature, ...]:
    """The signatures of the queries of a file, which no schema changes. Raises InvalidQuery."""
    return signatures_of(source)


class CheckedQueries:
    """A small cache. Thread-safe."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], tuple[TypedQuery, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def queries(self, source: str, catalog: Catalog, schema_digest: str) -> tuple[TypedQuery, ...]:
        """The queries of a file, checked. Raises InvalidQuery."""
        key = (schema_digest, source)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        checked = tuple(check(source, catalog))
        with self._lock:
            self._kept[key] = checked
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return checked
