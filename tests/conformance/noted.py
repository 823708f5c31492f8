"""A plugin of pytest (`-p conformance.noted`): which codes the program makes while a test runs.

Of all that is collected it runs the tests that `--wanted` names: a JSON object with `tests`, each `path::name`, and `cases`,
pairs of a file and a title, which mean every test that is given that case. To `--noted` it writes the codes that came up
in each of them, and all cases that some collected test is given.

A code counts if the program makes the error, diagnostic, step or finding that has it, not if the test does.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import omnigraph
from conformance.steps import LogicCase
from omnigraph.cli.linting import Linted
from omnigraph.errors import OmnigraphError
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.query.lint.findings import Finding
from omnigraph.lang.schema.steps import Step
from support.cases import Case

PROGRAM = str(Path(omnigraph.__file__).parent)


def _of_error(error: OmnigraphError) -> Iterator[str]:
    """Its own code, and that of what it tells about: a violated constraint, a record at fault."""
    yield error.code
    if isinstance(error.details, Mapping) and isinstance(code := error.details.get("code"), str):
        yield code


CODES_OF: dict[type[Any], Callable[[Any], Iterator[str | None]]] = {
    OmnigraphError: _of_error,
    Diagnostic: lambda made: iter([made.code]),
    Step: lambda made: iter([made.code]),
    Finding: lambda made: iter([made.code]),
    Linted: lambda made: (refused["code"] for refused in made.refused),
}
"""What has a code that a user sees, and how it is found in it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--wanted", metavar="FILE", type=Path, required=True, help="which tests and cases to run")
    parser.addoption("--noted", metavar="FILE", type=Path, required=True, help="where to write what came up")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Notes(config.option.wanted, config.option.noted))


class Notes:
    def __init__(self, wanted: Path, out: Path) -> None:
        asked = json.loads(wanted.read_text(encoding="utf-8"))
        self._tests = set(asked["tests"])
        self._cases = {(file, title) for file, title in asked["cases"]}
        self._out = out
        self._heard: set[str] = set()
        self._of_tests: dict[str, set[str]] = defaultdict(set)
        self._of_cases: dict[tuple[str, str], set[str]] = {}
        for made, codes_of in CODES_OF.items():
            self._listen(made, codes_of)

    def _listen(self, made: type[Any], codes_of: Callable[[Any], Iterator[str | None]]) -> None:
        init = made.__init__

        @wraps(init)
        def and_note(this: Any, *given: Any, **named: Any) -> None:
            init(this, *given, **named)
            if _by_program(this, sys._getframe(1)):
                self._heard |= {code for code in codes_of(this) if code is not None}

        made.__init__ = and_note

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept: list[pytest.Item] = []
        for item in items:
            for case in _cases(item):
                self._of_cases.setdefault(case, set())
            if _name(item) in self._tests or self._cases & set(_cases(item)):
                kept.append(item)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        self._heard.clear()
        try:
            return (yield)
        finally:
            self._of_tests[_name(item)] |= self._heard
            for case in _cases(item):
                self._of_cases[case] |= self._heard

    def pytest_sessionfinish(self) -> None:
        noted = {
            "tests": {name: sorted(codes) for name, codes in self._of_tests.items()},
            "cases": [[file, title, sorted(codes)] for (file, title), codes in self._of_cases.items()],
        }
        self._out.write_text(json.dumps(noted), encoding="utf-8")


def _name(item: pytest.Item) -> str:
    """Without what it is parametrized by."""
    return f"{item.path}::{getattr(item, 'originalname', item.name)}"


def _cases(item: pytest.Item) -> list[tuple[str, str]]:
    """The file and the title of each case that the test is given."""
    given = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    return [(str(value.file), value.title) for value in given if isinstance(value, Case | LogicCase)]


def _by_program(made: object, frame: FrameType | None) -> bool:
    """Whether the first who stands behind the constructors of `made`, itself and `dataclasses.replace` aside, is of the program."""
    while frame is not None and (_constructs(frame, made) or frame.f_globals.get("__name__") == "dataclasses"):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(PROGRAM)


def _constructs(frame: FrameType, made: object) -> bool:
    return any(frame.f_locals.get(name) is made for name in ("self", "this"))
