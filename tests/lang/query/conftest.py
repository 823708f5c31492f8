"""The harbour schema, with a few types more for rules that it has no case for."""

from __future__ import annotations

import pytest

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from support.schemas import HARBOUR, counter

MORE = """
edge Hosts: Port -> Vessel { berth: String? }
edge Marks: Vessel -> Vessel { lag: String?  kind: enum(red, green)  note: String }
edge In: Vessel -> Port
node Log { text: String  true: Bool?  done: Bool }
edge Logs: Log -> Vessel { level: I32 }
"""


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return compile_schema(HARBOUR + MORE, mint=counter())
