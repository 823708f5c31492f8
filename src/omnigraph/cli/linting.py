"""The lint report of one query file (languages.md 17), as far as this version has it: faults, no warnings. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.errors import InvalidQuery
from omnigraph.lang.diagnostics import Diagnostic, SourceText
from omnigraph.lang.query.check import check_file, check_query
from omnigraph.lang.query.operation import describe
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.query.syntax import QuerySyntax, ReadBody
from omnigraph.lang.schema.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Linted:
    """One file. `results` are the wire's objects of its queries, `findings` what concerns the file as a whole."""

    path: str
    results: tuple[dict[str, Any], ...]
    findings: tuple[dict[str, Any], ...]
    faults: tuple[Diagnostic, ...]

    @property
    def status(self) -> Literal["ok", "error"]:
        return "error" if self.faults else "ok"

    @property
    def queries(self) -> int:
        return len(self.results)

    def to_dict(self) -> dict[str, Any]:
        return {
            "query_path": self.path,
            "queries_processed": self.queries,
            "errors": len(self.faults),
            "warnings": 0,
            "infos": 0,
            "results": list(self.results),
            "findings": list(self.findings),
        }


def linted(source: str, path: str, catalog: Catalog) -> Linted:
    """Parse, then check each query for itself; the first fault of each counts, and the next query is checked all the same."""
    try:
        file = parse_file(source)
    except InvalidQuery as refused:
        fault = _diagnostic(refused)
        return Linted(path, (), (_finding("Q000", fault),), (fault,))
    text = SourceText(file.text)
    judged = [_judged(query, catalog, text) for query in file.queries]
    results = tuple(result for result, _ in judged)
    faults = [fault for _, fault in judged if fault is not None]
    findings: tuple[dict[str, Any], ...] = ()
    if not faults:
        try:
            check_file(file, catalog)
        except InvalidQuery as refused:  # of the file, not of one query: settings, repeated names, statements
            faults = [_diagnostic(refused)]
            findings = (_finding(faults[0].code, faults[0]),)
    return Linted(path, results, findings, tuple(faults))


def _judged(query: QuerySyntax, catalog: Catalog, text: SourceText) -> tuple[dict[str, Any], Diagnostic | None]:
    result: dict[str, Any] = {
        "name": query.name.text,
        "kind": "read" if isinstance(query.body, ReadBody) else "mutation",
    }
    try:
        typed = check_query(query, catalog, text)
    except InvalidQuery as refused:
        fault = _diagnostic(refused)
        return {**result, "status": "error", "warnings": [], "error": fault.to_dict()}, fault
    operation = describe(typed, catalog).to_dict()
    return {**result, "status": "ok", "warnings": [], "operation": operation}, None


def _finding(code: str, fault: Diagnostic) -> dict[str, Any]:
    return {"severity": "error", "code": code, "message": fault.message, "error": fault.to_dict()}


def _diagnostic(refused: InvalidQuery) -> Diagnostic:
    diagnostic = refused.diagnostic
    assert isinstance(diagnostic, Diagnostic)
    return diagnostic
