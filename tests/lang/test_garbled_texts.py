"""Whatever text comes in, a query or schema is read or refused with a diagnostic that can be shown; nothing else happens.

20,000 texts from seeds; GARBLED_TEXTS asks for another number of them (`make fuzz`). A text that fails is found again by its seed, which
is in the name of the test, and its number.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import InvalidQuery, InvalidSchema
from omnigraph.lang.diagnostics import Diagnostic, SourceText
from omnigraph.lang.lexical import decode_source
from omnigraph.lang.query.check import check, check_file, signatures
from omnigraph.lang.query.lint.rules import file_findings, query_findings, schema_findings
from omnigraph.lang.query.operation import describe
from omnigraph.lang.query.parse import QUERY_LEXIS, parse_file
from omnigraph.lang.query.printer import file_text
from omnigraph.lang.query.typed import Pattern, ReadQuery
from omnigraph.lang.query.typed_text import typed_text
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.migration import plan_migration
from omnigraph.lang.schema.parse import parse_schema
from omnigraph.lang.schema.printing import schema_text
from support.cases import read_cases, refusal
from support.garbled import Garbler
from support.schemas import HARBOUR, counter, random_schema

HERE = Path(__file__).parent
CHUNK = 1_250
CHUNKS = max(1, round(int(os.environ.get("GARBLED_TEXTS", "20000")) / CHUNK))


def read_texts() -> list[str]:
    """Queries that check and queries that do not."""
    from conformance.steps import cases_of

    files = ("parse_refused", "check_refused", "lint")
    texts = [refusal(case).text for name in files for case in read_cases(HERE / "query" / f"{name}.cases")]
    steps = (step for case in cases_of(HERE.parent / "conformance") if case.graph == "harbour" for step in case.steps)
    return texts + [step.text for step in steps if step.mode is None]


def schema_texts() -> list[str]:
    import random

    refused = [refusal(case).text for case in read_cases(HERE / "schema" / "refused.cases")]
    return [*refused, HARBOUR, *(random_schema(random.Random(seed)) for seed in range(20))]


QUERIES, SCHEMAS = read_texts(), schema_texts()


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return compile_schema(HARBOUR, mint=counter())


@pytest.mark.parametrize("seed", range(CHUNKS - CHUNKS // 4))
def test_any_text_is_a_query_file_or_refused(seed: int, catalog: Catalog) -> None:
    garbler = Garbler(seed, QUERIES)
    outcomes = {judged(garbler.text(), partial(as_queries, catalog=catalog), seed, number) for number in range(CHUNK)}
    assert {None, "Q001", "T6"} <= outcomes


@pytest.mark.parametrize("seed", range(max(1, CHUNKS // 4)))
def test_any_text_is_a_schema_or_refused(seed: int, catalog: Catalog) -> None:
    garbler = Garbler(1_000_000 + seed, SCHEMAS)
    outcomes = {judged(garbler.text(), partial(as_schema, catalog=catalog), seed, number) for number in range(CHUNK)}
    assert {None, "S001", "S003"} <= outcomes


def judged(text: str | bytes, read: Callable[[str | bytes], None], seed: int, number: int) -> str | None:
    """The code of the refusal, None if the text was read. Fails for anything else."""
    try:
        read(text)
    except (InvalidQuery, InvalidSchema) as refused:
        found = refused.diagnostic
    except Exception as failed:  # whatever it is, the test says for which text
        shown = repr(text) if len(text) < 2_000 else f"{text[:1_000]!r} … {text[-1_000:]!r}"
        raise AssertionError(f"text {number} of seed {seed}: {type(failed).__name__}: {shown}") from failed
    else:
        return None
    assert isinstance(found, Diagnostic)
    sound(found, text)
    return found.code


def sound(found: Diagnostic, text: str | bytes) -> None:
    """A diagnostic whose places lie in the text, which can be shown and sent."""
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    assert found.position is not None
    assert 0 <= found.position.byte <= size
    assert found.end is None or found.position.byte <= found.end.byte <= size
    assert found.position.line >= 1
    assert found.position.column >= 1
    assert found.code in found.message
    for one_line in (found.message, found.expected or ""):
        assert len(one_line.splitlines()) <= 1
    assert "\n" not in (found.fix or "")
    found.render("x").encode()  # without a lone surrogate
    for edit in found.suggestion.edits if found.suggestion is not None else ():
        assert 0 <= edit.start <= edit.end <= size


def as_queries(text: str | bytes, *, catalog: Catalog) -> None:
    """All that is done to the text of queries before a graph is asked."""
    file = parse_file(text)
    assert parse_file(file_text(file)) == file
    signatures(file.text)
    typed = check_file(file, catalog)
    assert check(text, catalog) == typed
    source = SourceText(file.text)
    file_findings(file.queries, catalog, source)
    for query in typed:
        describe(query, catalog)
        if isinstance(query, ReadQuery):
            shown(query.pattern)
            for each in (*query.items, *query.order):
                typed_text(each.expr)
    for syntax, query in zip(file.queries, typed, strict=False):
        for finding in query_findings(syntax, query, catalog, source):
            finding.render("x")


def shown(pattern: Pattern) -> None:
    for each in pattern.filters:
        typed_text(each)
    for block in pattern.blocks:
        shown(block.pattern)


def as_schema(text: str | bytes, *, catalog: Catalog) -> None:
    """All that is done to the text of a schema before a graph is asked."""
    compiled = compile_schema(text, mint=counter())
    schema_findings(parse_schema(text), compiled)
    assert schema_text(compile_schema(schema_text(compiled), mint=counter())) == schema_text(compiled)
    source: Any = decode_source(text, QUERY_LEXIS)
    plan_migration(catalog, HARBOUR, source, mint=counter(1_000)).to_list()
