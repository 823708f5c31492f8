"""Files of columns for `load --type`: Parquet, Arrow IPC (stream or file) and CSV as an Arrow table.

CSV is read by the rules it is written by (interfaces.md 7): an empty field is null, `""` the empty text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.cli.errors import UsageRefused

if TYPE_CHECKING:
    import pyarrow as pa

_ENDINGS = (".parquet", ".arrow", ".csv")


def is_frame(path: str) -> bool:
    return path.lower().endswith(_ENDINGS)


def read_frame_file(path: str) -> pa.Table:
    """Raises UsageRefused for a file that can't be opened or is not what its name says."""
    import pyarrow as pa

    try:
        if path.lower().endswith(".parquet"):
            import pyarrow.parquet as pq

            return pq.read_table(path)
        if path.lower().endswith(".csv"):
            return _csv(path)
        return _arrow(path)
    except OSError as error:
        raise UsageRefused(f"--data {path}: {error.strerror or 'this file can not be read'}.") from None
    except pa.ArrowInvalid:
        raise UsageRefused(f"--data {path}: the content is not what the file's name says.") from None


def _arrow(path: str) -> pa.Table:
    import pyarrow as pa

    with pa.memory_map(path) as file:
        if file.read(6) == b"ARROW1":
            return pa.ipc.open_file(path).read_all()
    with pa.OSFile(path) as file:
        return pa.ipc.open_stream(file).read_all()


def _csv(path: str) -> pa.Table:
    import pyarrow.csv as pc

    options = pc.ConvertOptions(
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False, auto_dict_encode=False
    )
    return pc.read_csv(path, convert_options=options)
