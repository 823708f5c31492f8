"""Schemas for tests: the harbour, ids that count, and random schemas with a random layout."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from omnigraph.lang.lexical import string_literal

HARBOUR_PATH = Path(__file__).parent.parent / "data" / "harbour.pg"
HARBOUR = HARBOUR_PATH.read_text(encoding="utf-8")


def counter(start: int = 1) -> Callable[[], str]:
    """Ids 1, 2, 3, … of 16 hex digits."""
    numbers = itertools.count(start)
    return lambda: f"{next(numbers):016x}"


SCALARS = ["String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime"]
NAMES = ["a", "b", "c", "id", "type", "node", "enum", "true", "and", "a__2", "aB"]
VARIANTS = ["a", "b", "laid-up", "2nd", "-", "true", "A_b"]
TEXTS = ["x", 'quote " and \\ slash', "line\nbreak\ttab\rreturn", "é 𝄞 // no comment", "/* */"]
PATTERNS = ["^[A-Z]{3}$", "\\d+", '"', "é|ü"]


@st.composite
def types(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["scalar", "scalar", "list", "vector", "enum", "blob"]))
    mark = draw(st.sampled_from(["", "?"]))
    if kind == "scalar":
        return draw(st.sampled_from(SCALARS)) + mark
    if kind == "list":
        return f"[{draw(st.sampled_from(SCALARS))}]{mark}"
    if kind == "vector":
        return f"Vector({draw(st.integers(1, 2**31 - 1))}){mark}"
    if kind == "enum":
        variants = draw(st.lists(st.sampled_from(VARIANTS), min_size=1, unique=True))
        return f"enum({', '.join(variants)}{draw(st.sampled_from(['', ',']))}){mark}"
    return f"Blob{mark}"


def _groupable(of: str) -> bool:
    return not of.startswith(("[", "Vector", "Blob"))


@st.composite
def _other_notes(draw: st.DrawFn) -> list[str]:
    notes: list[str] = []
    if draw(st.booleans()):
        notes.append(f"@description({string_literal(draw(st.sampled_from(TEXTS)))})")
    if draw(st.booleans()):
        argument = draw(
            st.sampled_from(
                ["", "(word)", '("text")', "(1)", "(1.5)", "(true)", "(-2e-3, a=1, b=false,)", '(w, c="x")', "(1e22)"]
            )
        )
        notes.append(f"@shown{argument}")
    return notes


@st.composite
def _properties(draw: st.DrawFn, allow: bool, edge: bool = False) -> tuple[dict[str, str], list[str], bool]:
    """Types by name, the lines, and whether a note made a key."""
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    written: dict[str, str] = {}
    lines: list[str] = []
    keyed = False
    for name in names:
        of = draw(types())
        notes: list[str] = draw(_other_notes())
        if _groupable(of) and not of.endswith("?") and not keyed and not edge and allow and draw(st.booleans()):
            notes.append("@key")
            keyed = True
        if _groupable(of) and draw(st.booleans()):
            notes.append("@unique")
        if not of.startswith("Blob") and draw(st.booleans()):
            notes.append("@index")
        texts = [other for other, kind in written.items() if kind.rstrip("?") == "String"]
        if of.startswith("Vector") and texts and not edge and draw(st.booleans()):
            model = draw(st.sampled_from(["", ', model="m"']))
            notes.append(f'@embed("{draw(st.sampled_from(texts))}"{model})')
        written[name] = of
        lines.append(f"{name}: {of} {' '.join(draw(st.permutations(notes)))}")
    return written, lines, keyed


@st.composite
def _groups(draw: st.DrawFn, written: dict[str, str], keyed: bool, edge: bool) -> list[str]:
    ends = ["@src", "@dst"] if edge else []
    rules: list[str] = []
    keys = ends + [name for name, of in written.items() if _groupable(of) and not of.endswith("?")]
    if not keyed and keys and draw(st.booleans()):
        chosen = set(ends) | set(draw(st.lists(st.sampled_from(keys), min_size=1, unique=True)))
        rules.append(f"@key({', '.join(draw(st.permutations(sorted(chosen))))})")
    uniques = ends + [name for name, of in written.items() if _groupable(of)]
    indexes = ends + [name for name, of in written.items() if not of.startswith("Blob")]
    for kind, names in (("unique", uniques), ("index", indexes)):
        if names and draw(st.booleans()):
            rules.append(f"@{kind}({', '.join(draw(st.lists(st.sampled_from(names), min_size=1, unique=True)))})")
    return rules


def _values_rules(draw: Any, written: dict[str, str]) -> list[str]:
    rules: list[str] = []
    for name, of in written.items():
        bare = of.rstrip("?")
        if bare in ("F32", "F64") and draw(st.booleans()):
            rules.append(f"@range({name}, {draw(st.sampled_from(['0..', '..0.1', '-1..1e10', '-10..-3', '0..0,']))})")
        if bare in ("I32", "I64", "U32", "U64") and draw(st.booleans()):
            rules.append(f"@range({name}, {draw(st.sampled_from(['0..', '..7', '007..150']))})")
        if (bare == "String" or bare.startswith("enum")) and draw(st.booleans()):
            rules.append(f"@check({name}, {string_literal(draw(st.sampled_from(PATTERNS)))})")
    return rules


@st.composite
def schema_texts(draw: st.DrawFn) -> str:
    """The text of a legal schema."""
    blocks: list[str] = []
    interfaces = [f"I{number}" for number in range(draw(st.integers(0, 2)))]
    brought: dict[str, dict[str, str]] = {}
    brought_keys: set[str] = set()
    for name in interfaces:
        # Names of their own, so that no type is in conflict; a shared name is tested by hand.
        written, lines, keyed = draw(_properties(allow=not brought_keys))
        lines = [f"{name.lower()}_{line}" for line in lines]
        lines = [line.replace('@embed("', f'@embed("{name.lower()}_') for line in lines]
        brought[name] = {f"{name.lower()}_{prop}": of for prop, of in written.items()}
        if keyed:
            brought_keys.add(name)
        blocks.append(_block(draw, f"interface {name}", lines))
    nodes = [f"N{number}" for number in range(draw(st.integers(0, 3)))]
    for name in nodes:
        implements = draw(st.lists(st.sampled_from(interfaces), unique=True)) if interfaces else []
        has_key = bool(brought_keys & set(implements))
        written, lines, keyed = draw(_properties(allow=not has_key))
        everything = {**written, **{prop: of for i in implements for prop, of in brought[i].items()}}
        rules = draw(_groups(everything, keyed or has_key, False)) + _values_rules(draw, everything)
        words = f" implements {', '.join(implements)}" if implements else ""
        blocks.append(_block(draw, f"node {name} {' '.join(draw(_other_notes()))}{words}", lines + rules))
    for number in range(draw(st.integers(0, 2)) if nodes else 0):
        source, target = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        written, lines, _ = draw(_properties(allow=False, edge=True))
        rules = draw(_groups(written, False, True))
        card = draw(st.sampled_from(["", "@card(0..1)", "@card(2..)", "@card(0..)"]))
        head = f"edge E{number}: {source} -> {target} {card} {' '.join(draw(_other_notes()))}"
        blocks.append(_block(draw, head, lines + rules) if lines or rules or draw(st.booleans()) else head)
    order = draw(st.permutations(blocks))
    return draw(st.sampled_from(["", "\ufeff", "// schema\n"])) + "\n".join(order)


def _block(draw: Any, head: str, lines: list[str]) -> str:
    separators = st.sampled_from(["\n", ",\n", " /* , */ ", "  ", " , // and\r\n\t"])
    body = "".join(line + draw(separators) for line in lines)
    return f"{head} {{ {body} }}"
