"""The tail by DuckDB: for many rows and several keys, with a memory limit and a place to spill.

The connection reads nothing but the Arrow tables that are registered on it: no file, no extension, no name of a Python
variable; its configuration is locked. Values travel as columns, never as text of a statement.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import cast

import duckdb
import numpy as np
import pyarrow as pa

from omnigraph.query.relational.tail import Groups, SortKey

_MEMORY_SHARE = "25%"
_INPUT = "omnigraph_rows"


class DuckTail:
    """One database of its own in memory; cursors are kept and handed to one thread at a time."""

    def __init__(self, *, memory_limit: str | None = None, threads: int | None = None) -> None:
        self._folder = tempfile.mkdtemp(prefix="omnigraph-duckdb-")  # made with mode 0700
        self._free: list[duckdb.DuckDBPyConnection] = []
        self._lock = threading.Lock()
        config: dict[str, str | bool | int | float | list[str]] = {"temp_directory": self._folder}
        if memory_limit is not None:
            config["memory_limit"] = memory_limit
        if threads is not None:
            config["threads"] = threads
        self._root = duckdb.connect(":memory:", config=config)
        for setting in (
            "SET python_enable_replacements = false",
            "SET autoinstall_known_extensions = false",
            "SET autoload_known_extensions = false",
            "SET allow_community_extensions = false",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._root.execute(setting)

    def close(self) -> None:
        self._root.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def _input(self, table: pa.Table) -> Generator[duckdb.DuckDBPyConnection]:
        """A cursor that sees the table. Views are the cursor's own: another one does not see them."""
        with self._lock:
            cursor = self._free.pop() if self._free else self._root.cursor()
        cursor.register(_INPUT, table)
        try:
            yield cursor
        except (
            duckdb.OutOfMemoryException,
            duckdb.IOException,
        ) as error:  # more than its share, or than the folder takes
            raise MemoryError from error
        finally:
            cursor.unregister(_INPUT)
            with self._lock:
                self._free.append(cursor)

    def groups(self, keys: Sequence[pa.Array]) -> Groups:
        names = [f"k{i}" for i in range(len(keys))]
        table = pa.table([*keys, pa.array(np.arange(len(keys[0])))], names=[*names, "i"])
        columns = ", ".join(names)
        same = " AND ".join(f"r.{name} IS NOT DISTINCT FROM g.{name}" for name in names)
        statement = (
            f"WITH g AS (SELECT {columns}, min(i) AS first FROM {_INPUT} GROUP BY {columns})"
            f" SELECT r.i AS i, g.first AS first FROM {_INPUT} r JOIN g ON {same}"
        )
        with self._input(table) as cursor:
            found = _arrow(cursor.sql(statement))
        of_row = np.empty(len(keys[0]), np.int64)
        of_row[found.column("i").to_numpy()] = found.column("first").to_numpy()
        first, numbers = np.unique(of_row, return_inverse=True)
        return Groups(numbers.astype(np.int64), first, len(first))

    def order(self, rows: int, keys: Sequence[SortKey], limit: int | None) -> np.ndarray:
        columns = [key.fetch(None) for key in keys]
        table = pa.table([*columns, pa.array(np.arange(rows))], names=[*(f"k{i}" for i in range(len(keys))), "i"])
        order = ", ".join(
            f"k{i} DESC NULLS LAST" if key.descending else f"k{i} ASC NULLS FIRST" for i, key in enumerate(keys)
        )
        statement = f"SELECT i FROM {_INPUT} ORDER BY {order}"
        if limit is not None:
            statement += f" LIMIT {int(limit)}"
        with self._input(table) as cursor:
            return _arrow(cursor.sql(statement)).column("i").to_numpy()


def _arrow(answer: duckdb.DuckDBPyRelation) -> pa.Table:
    return cast(pa.Table, answer.to_arrow_table())


_duck_tail: DuckTail | None = None
_duck_lock = threading.Lock()


def duck_tail() -> DuckTail:
    """The engine of this process, started when first needed and kept."""
    global _duck_tail
    with _duck_lock:
        if _duck_tail is None:
            _duck_tail = DuckTail(memory_limit=_MEMORY_SHARE)
            atexit.register(_duck_tail.close)
        return _duck_tail
