"""Results as bytes: JSON rows, NDJSON, CSV, Arrow streams, load records (languages.md 20, 15.3; interfaces.md 7).

Functions of a table alone, made of Arrow kernels; no loop over rows. Knows neither queries nor HTTP.
"""

from omnigraph.query.encode.cells import Spelling
from omnigraph.query.encode.formats import arrow_stream, csv, json_rows, ndjson
from omnigraph.query.encode.records import export_records

__all__ = ["Spelling", "arrow_stream", "csv", "export_records", "json_rows", "ndjson"]
