"""Results as bytes: JSON rows, NDJSON, CSV, Arrow streams, load records (languages.md 20, interfaces.md 7)."""
