"""Files of columns for `load --type`: Parquet, Arrow IPC (stream or file) and CSV as an Arrow table.

CSV is read by the rules it is written by (interfaces.md 7): an empty field is null, `""` the empty text, lists and
vectors are JSON arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.cli.errors import UsageRefused

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.lang.schema.catalog import EntityType

_ENDINGS = (".parquet", ".arrow", ".csv")


def is_frame(path: str) -> bool:
    return path.lower().endswith(_ENDINGS)


def read_frame_file(path: str, entity: EntityType | None) -> pa.Table:
    """The columns of a file; those of CSV by the types that the entity's properties have.

    Raises UsageRefused for a file that can't be opened or is not what its name says.
    """
    import pyarrow as pa

    try:
        if path.lower().endswith(".parquet"):
            import pyarrow.parquet as pq

            return pq.read_table(path)
        return _csv(path, entity) if path.lower().endswith(".csv") else _arrow(path)
    except OSError as error:
        raise UsageRefused(f"--data {path}: {error.strerror or 'this file can not be read'}.") from None
    except pa.ArrowInvalid:
        raise UsageRefused(f"--data {path}: the content is not what its name or the type's properties say.") from None


def _arrow(path: str) -> pa.Table:
    import pyarrow as pa

    with pa.memory_map(path) as file:
        if file.read(6) == b"ARROW1":
            return pa.ipc.open_file(path).read_all()
    with pa.OSFile(path) as file:
        return pa.ipc.open_stream(file).read_all()


def _csv(path: str, entity: EntityType | None) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv as csv

    types = {} if entity is None else _types(entity)
    nested = [name for name, kind in types.items() if pa.types.is_list(kind)]
    options = csv.ConvertOptions(
        column_types={**types, **dict.fromkeys(nested, pa.string())},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    table = csv.read_csv(path, convert_options=options)
    for name in nested:
        if (place := table.schema.get_field_index(name)) >= 0:
            table = table.set_column(place, name, _parsed(table.column(name), types[name]))
    return table


def _types(entity: EntityType) -> dict[str, pa.DataType]:
    """Arrow types by the names that a CSV header uses. Times come as they are written: UTC, without a zone."""
    import pyarrow as pa

    from omnigraph.tables.columns import arrow_type

    types: dict[str, pa.DataType] = {"@id": pa.string(), "@src": pa.string(), "@dst": pa.string()}
    for each in entity.properties:
        kind = arrow_type(each.type)
        if pa.types.is_timestamp(kind):
            kind = pa.timestamp("ms")
        elif pa.types.is_fixed_size_list(kind):
            kind = pa.list_(kind.value_type)
        types[each.name] = kind
    return types


def _parsed(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """JSON arrays as lists: the column becomes one text of JSON lines, which is read at once."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.json as pj

    if not len(text):
        return pa.chunked_array([], kind)
    lines = pc.binary_join_element_wise('{"x":', pc.fill_null(text, "null"), "}\n", "").combine_chunks()
    whole = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines), "")
    options = pj.ParseOptions(explicit_schema=pa.schema([pa.field("x", kind)]), newlines_in_values=False)
    return pj.read_json(pa.BufferReader(whole[0].as_buffer()), parse_options=options).column("x")
