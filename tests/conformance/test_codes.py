"""Every code of languages.md is produced by some test: `codes.txt` says which, and is held to what it says."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.codes import CODE, Listed, Place, asking, hidden_codes, listed, texts, whole_codes

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
CHECKOUT = TESTS.parent
SOURCE = CHECKOUT / "src" / "omnigraph"

CODES = listed(HERE / "codes.txt")
PRODUCED = [each for each in CODES if each.producer is not None]


@pytest.fixture(scope="module")
def source_texts() -> list[str]:
    """The texts of all modules of the program."""
    return [text for path in SOURCE.rglob("*.py") for text in texts(path.read_text(encoding="utf-8"))]


def test_each_code_is_listed_once() -> None:
    assert len({each.code for each in CODES}) == len(CODES) > 120


def test_every_code_that_the_source_can_raise_has_a_case_and_no_other_does(source_texts: list[str]) -> None:
    words = {each.code for each in CODES if each.code.islower()}  # told apart from other words by the list alone
    assert whole_codes(source_texts) | (words & set(source_texts)) == {each.code for each in PRODUCED}


def test_the_source_hides_no_code_in_a_longer_text_and_puts_none_together(source_texts: list[str]) -> None:
    assert hidden_codes(source_texts) == set()


@pytest.mark.parametrize(
    ("source", "whole", "hidden"),
    [
        ('raise refused("T18", "gone")', {"T18"}, set()),
        ("raise refused('T18')", {"T18"}, set()),
        ('"""T18 is no more."""', set(), set()),
        ('MESSAGE = f"type error: T18: {what}"', set(), {"type error: T18: \0"}),
        ('CODES = "T17 T18".split()', set(), {"T17 T18"}),
        ('raise refused(f"T{number}")', set(), {"T\0"}),
        ('raise refused("OG-DS-" + number)', set(), {"OG-DS-\0"}),
        ('raise refused("OG-DS-%d" % number)', set(), {"OG-DS-\0\0"}),
        ('raise refused("OG-DS-{}".format(number))', set(), {"OG-DS-\0"}),
        ('told = f"{date}T{time}, {code}: {what}"', set(), set()),
    ],
)
def test_a_code_is_found_wherever_the_source_has_it(source: str, whole: set[str], hidden: set[str]) -> None:
    assert whole_codes(texts(source)) == whole
    assert hidden_codes(texts(source)) == hidden


# --- what a test says that it produces


@pytest.mark.parametrize("code", PRODUCED, ids=lambda each: each.code)
def test_the_case_of_a_code_asks_for_it(code: Listed) -> None:
    assert code.producer is not None
    file, _, test = code.producer.partition("::")
    assert asks_for(TESTS / file, test, code.code), f"{code.producer} does not ask for {code.code}"


def asks_for(path: Path, test: str, code: str) -> bool:
    if path.suffix == ".py":
        return re.search(rf"[\"']{code}[\"']", body_of(path.read_text(encoding="utf-8"), test)) is not None
    return any(code in case.codes for case in asking(path))


def body_of(text: str, test: str) -> str:
    """The text of a test, its decorators included."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == test:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return "\n".join(lines[first - 1 : node.end_lineno])
    return ""


def test_a_file_that_does_not_ask_for_a_code_is_found() -> None:
    assert asks_for(HERE / "search.case", "", "T38")
    assert not asks_for(HERE / "search.case", "", "T3")
    assert not asks_for(Path(__file__), "test_each_code_is_listed_once", "T38")
    assert not asks_for(Path(__file__), "test_that_is_not_there", "T38")


# --- what comes up while it runs


@dataclass(frozen=True)
class Noted:
    """The codes that came up in each test that was run, by `path::name`; and the cases that some test is given, with those
    that came up in its tests.
    """

    tests: dict[str, set[str]]
    cases: dict[Place, set[str]]


def noted(tests: Collection[str], cases: Collection[Place], folders: Collection[Path], out: Path) -> Noted:
    """Run these of what `folders` and the files of `tests` hold, in a process of its own that notes what comes up
    (`conformance.noted`).
    """
    (out / "wanted.json").write_text(json.dumps({"tests": sorted(tests), "cases": sorted(cases)}), encoding="utf-8")
    places = {Path(test.partition("::")[0]) for test in tests} | set(folders)
    words = [sys.executable, "-m", "pytest", "-q", "-c", str(CHECKOUT / "pyproject.toml"), "--rootdir", str(CHECKOUT)]
    words += ["-p", "conformance.noted", "-p", "no:cacheprovider", "--basetemp", str(out / "tmp")]
    words += ["--wanted", str(out / "wanted.json"), "--noted", str(out / "noted.json")]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [*words, *sorted(str(place) for place in places if place.exists())],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((out / "noted.json").read_text(encoding="utf-8"))
    return Noted(
        {name: set(codes) for name, codes in found["tests"].items()},
        {(file, title): set(codes) for file, title, codes in found["cases"]},
    )


def shortcomings(codes: Sequence[Listed], below: Path, out: Path) -> list[str]:
    """What the list says and is not so: producers are files `below`. `out` is for what the run leaves behind."""
    every = [case for path in sorted(below.rglob("*.case*")) for case in asking(path)]
    # The first case of each file that asks for a code stands for it.
    asked = {(str(case.file), code): case.place for case in reversed(every) for code in case.codes}
    producers = {each: str(below / each.producer) for each in codes if each.producer is not None}
    cases = {each: asked[file, each.code] for each, file in producers.items() if (file, each.code) in asked}
    tests = {each: test for each, test in producers.items() if each not in cases}
    came = noted(tests.values(), cases.values(), {case.file.parent for case in every}, out)

    told = [
        f"{case.file.relative_to(below)}: no test is given the case '{case.title}'"
        for case in every
        if case.place not in came.cases
    ]
    for each, producer in producers.items():
        made = came.cases.get(cases[each]) if each in cases else came.tests.get(producer)
        if each.code not in (made or ()):
            told.append(f"{each.producer} does not produce {each.code}")
    others = set().union(*came.tests.values()) - {each.code for each in producers}
    return told + [f"{code} came up" for code in sorted(others) if CODE.fullmatch(code)]


def test_each_code_comes_up_while_the_test_that_is_listed_for_it_runs(tmp_path: Path) -> None:
    assert shortcomings(CODES, TESTS, tmp_path) == []


PLANTED = """
from pathlib import Path

import pytest

from omnigraph.errors import BranchNotFound, InvalidQuery
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.query.parse import parse_file
from support.cases import Case, read_cases


def test_that_raises() -> None:
    for text in ("query q { }", "nothing"):
        with pytest.raises(InvalidQuery, match="Q00[12]"):
            parse_file(text)


def test_that_only_quotes() -> None:
    assert "Q004" != "Q005"


def test_that_makes_it_itself() -> None:
    assert InvalidQuery(Diagnostic("T1", "typecheck", "type error: T1: no")).diagnostic.code == "T1"
    assert BranchNotFound("nobody raises this").code == "branch_not_found"


@pytest.mark.parametrize("case", read_cases(Path(__file__).parent / "given.cases"))
def test_that_is_given_cases(case: Case) -> None:
    with pytest.raises(InvalidQuery):
        parse_file(case.body)
"""


def test_what_a_list_says_wrongly_is_found(tmp_path: Path) -> None:
    below = tmp_path / "planted"
    below.mkdir()
    (below / "test_planted.py").write_text(PLANTED)
    (below / "given.cases").write_text("## it is so: Q002\nquery q { }\n\n## it is not: Q004\nquery q { }\n")
    (below / "forgotten.cases").write_text("## nobody reads this: Q002\nquery q { }\n")
    (below / "codes.txt").write_text(
        "Q002 test_planted.py::test_that_raises\nQ002 given.cases\nQ002 forgotten.cases\nQ004 given.cases\n"
        "Q004 test_planted.py::test_that_only_quotes\nQ004 test_planted.py::test_that_is_not_there\n"
        "T1 test_planted.py::test_that_makes_it_itself\nbranch_not_found test_planted.py::test_that_makes_it_itself\n"
        "Q004 test_that_is_not_there.py::test_at_all\nQ001 - nothing raises it\n"
    )
    assert shortcomings(listed(below / "codes.txt"), below, tmp_path) == [
        "forgotten.cases: no test is given the case 'nobody reads this: Q002'",
        "forgotten.cases does not produce Q002",
        "given.cases does not produce Q004",
        "test_planted.py::test_that_only_quotes does not produce Q004",
        "test_planted.py::test_that_is_not_there does not produce Q004",
        "test_planted.py::test_that_makes_it_itself does not produce T1",
        "test_planted.py::test_that_makes_it_itself does not produce branch_not_found",
        "test_that_is_not_there.py::test_at_all does not produce Q004",
        "Q001 came up",
    ]
