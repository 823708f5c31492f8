"""The answer of a query: columns that turn into rows, Arrow, Polars, pandas, files, and show well in a notebook.

Holds an Arrow table and what the answer is about; knows nothing of how it was computed, so embedded and remote graphs
give the same class. pyarrow is imported with the first table, not with this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, overload

from omnigraph.errors import ExpectedOne, InvalidRequest
from omnigraph.escaping import safe_text

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_SHOWN_ROWS = 20


@dataclass(frozen=True, slots=True)
class Target:
    """What the caller asked to read."""

    branch: str | None
    snapshot: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"branch": self.branch, "snapshot": self.snapshot}


class ResultStream:
    """The answer of a query as Arrow batches, one pass: what was taken is gone. Iterate over it, or hand it to whatever
    takes an Arrow stream.
    """

    def __init__(self, result: Result) -> None:
        self.types = result.types
        self.commit_id = result.commit_id
        self.query_name = result.query_name
        self.target = result.target
        self.warnings = result.warnings
        self.schema = result.schema
        self._batches = result.batches()

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, self._batches).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return safe_text(f"<ResultStream of {self.query_name} at {self.commit_id}: {', '.join(self.columns)}>")


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """Rows of a query.

    `table` holds the columns in return order, `types` their spelling in the query language, `commit_id` the commit whose
    state they show. Rows are dicts in which a null is None and its key is present. `profile`, if it
    was asked for: the rows of `explain`, and one of tree `profile` for each step, with the rows that came out of it and the
    time it took. `int64_as_text`: the setting `int64_json = string`, which holds for what is spelled as on the wire:
    `to_dict` and `to_json`.
    """

    table: pa.Table
    types: tuple[str, ...]
    commit_id: str
    query_name: str
    target: Target
    warnings: tuple[Mapping[str, str], ...] = ()
    profile: tuple[Mapping[str, Any], ...] | None = None
    int64_as_text: bool = False

    # rows

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def __len__(self) -> int:
        return self.table.num_rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.table.to_batches(max_chunksize=8_192):
            yield from batch.to_pylist()

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        """Row `i`, rows of a slice, or a column by name as a list. IndexError and KeyError as a list and a dict raise them."""
        if isinstance(key, str):
            if key not in self.table.column_names:
                raise KeyError(key)
            return self.table.column(key).to_pylist()
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        index = key + len(self) if key < 0 else key
        if not 0 <= index < len(self):
            raise IndexError(f"row {key} of {len(self)}")
        return self.table.slice(index, 1).to_pylist()[0]

    def one(self) -> dict[str, Any]:
        """The only row. Raises ExpectedOne if there are none or several."""
        if len(self) != 1:
            raise ExpectedOne(f"expected one row, the answer has {len(self)}")
        return self[0]

    def first(self, default: Any = None) -> Any:
        """The first row, or `default` if there is none."""
        return self[0] if len(self) else default

    def scalar(self) -> Any:
        """The only cell of the only row. Raises ExpectedOne otherwise."""
        if self.table.num_columns != 1:
            raise ExpectedOne(f"expected one column, the answer has {self.table.num_columns}")
        return next(iter(self.one().values()))

    def scalars(self, column: str | None = None) -> list[Any]:
        """One column as a list: the named one, or the only one (ExpectedOne if there are several)."""
        if column is None:
            if self.table.num_columns != 1:
                raise ExpectedOne(f"name one of the columns {', '.join(self.columns)}")
            column = self.columns[0]
        return self[column]

    # other libraries

    def arrow(self) -> pa.Table:
        return self.table

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.table.to_batches(max_chunksize=8_192)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def polars(self) -> pl.DataFrame:
        """A Polars frame; needs the extra `omnigraph[polars]`."""
        import polars as pl

        frame = pl.from_arrow(self.table)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def pandas(self, types: Literal["arrow", "numpy"] = "arrow") -> pd.DataFrame:
        """A pandas frame; needs the extra `omnigraph[pandas]`. `types="arrow"` keeps integers with nulls exact."""
        if types not in ("arrow", "numpy"):
            raise InvalidRequest("`types` is arrow or numpy.")
        if types == "numpy":
            return self.table.to_pandas()
        import pandas as pd

        return self.table.to_pandas(types_mapper=pd.ArrowDtype)

    def numpy(self, column: str) -> np.ndarray:
        """One column, an element for each row; a vector column becomes a two-dimensional array, whose row is NaN where the
        vector is null. Numbers with nulls among them become floats (`pandas()` keeps them exact).
        """
        import numpy as np
        import pyarrow as pa

        values = self.table.column(column).combine_chunks()
        if not pa.types.is_fixed_size_list(values.type):
            return np.asarray(values.to_numpy(zero_copy_only=False))
        numbers = np.asarray(values.flatten().to_numpy(zero_copy_only=False))  # of the vectors that are not null
        numbers = numbers.reshape(-1, values.type.list_size)
        if not values.null_count:
            return numbers
        rows = np.full((len(values), values.type.list_size), np.nan, dtype=numbers.dtype)
        rows[values.is_valid().to_numpy(zero_copy_only=False)] = numbers
        return rows

    # files

    def to_csv(self, path: str | PathLike[str]) -> None:
        self._write(path, "csv")

    def to_json(self, path: str | PathLike[str]) -> None:
        """One row object a line, spelled as on the wire."""
        self._write(path, "jsonl")

    def to_parquet(self, path: str | PathLike[str]) -> None:
        import pyarrow.parquet as pq

        pq.write_table(self.table, path)

    def _write(self, path: str | PathLike[str], form: Literal["csv", "jsonl"]) -> None:
        from omnigraph.query.encode import Spelling, csv, ndjson

        spelling = Spelling(int64_as_text=self.int64_as_text)
        with open(path, "wb") as file:
            for piece in csv(self.table, spelling) if form == "csv" else ndjson(self.table, spelling):
                file.write(piece)

    # the wire and people

    def to_dict(self) -> dict[str, Any]:
        """The answer object of the wire (interfaces.md 9.3), as reading its JSON gives it: dates are texts, nulls left out."""
        import json

        from omnigraph.query.encode import Spelling, json_rows

        rows = b"".join(json_rows(self.table, Spelling(int64_as_text=self.int64_as_text)))
        return {**self.head(), "rows": json.loads(rows)}

    def head(self) -> dict[str, Any]:
        """The answer object without `rows`."""
        body: dict[str, Any] = {
            "query_name": self.query_name,
            "target": self.target.to_dict(),
            "graph_commit_id": self.commit_id,
            "row_count": len(self),
            "columns": self.columns,
            "column_types": list(self.types),
        }
        if self.warnings:
            body["warnings"] = [dict(w) for w in self.warnings]
        if self.profile is not None:
            body["profile"] = [dict(p) for p in self.profile]
        return body

    def __repr__(self) -> str:
        from omnigraph.engine.display import text_table

        return text_table(self.table, self.types, shown=_SHOWN_ROWS, foot=self._foot())

    def _repr_html_(self) -> str:
        from omnigraph.engine.display import html_table

        return html_table(self.table, self.types, shown=_SHOWN_ROWS, foot=self._foot())

    def _foot(self) -> str:
        rows = "1 row" if len(self) == 1 else f"{len(self):,} rows"
        return f"{rows} at {safe_text(self.commit_id)}"
