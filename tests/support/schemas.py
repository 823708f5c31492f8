"""Schemas for tests: the harbour, ids that count, and random schemas with a random layout."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from omnigraph.lang.lexical import string_literal

HARBOUR_PATH = Path(__file__).parent.parent / "data" / "harbour.pg"
HARBOUR = HARBOUR_PATH.read_text(encoding="utf-8")

_SCALARS = ["String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime"]
_NAMES = ["a", "b", "c", "id", "type", "node", "enum", "true", "and", "a__2", "aB"]
_VARIANTS = ["a", "b", "laid-up", "2nd", "-", "true", "A_b"]
_TEXTS = ["x", 'quote " and \\ slash', "line\nbreak\ttab\rreturn", "é 𝄞 // no comment", "/* */"]
_PATTERNS = ["^[A-Z]{3}$", "\\d+", '"', "é|ü"]
_ARGUMENTS = ["", "(word)", '("t")', "(1)", "(1.5)", "(true)", "(-2e-3, a=1, b=false,)", '(w, c="x")', "(1e22)"]
_SEPARATORS = ["\n", ",\n", " /* , */ ", "  ", " , // and\r\n\t"]
_RANGES = {"F": ["0..", "..0.1", "-1..1e10", "-10..-3", "0..0,"], "I": ["0..", "..7", "007..150"]}


def counter(start: int = 1) -> Callable[[], str]:
    """Ids 1, 2, 3, … of 16 hex digits."""
    numbers = itertools.count(start)
    return lambda: f"{next(numbers):016x}"


def schema_texts() -> st.SearchStrategy[str]:
    """Texts of legal schemas. Drawn by seed: a text has too many parts to draw each from the strategy."""
    return st.integers(0, 2**32).map(lambda seed: random_schema(random.Random(seed)))


def random_schema(chance: random.Random) -> str:
    """The text of a legal schema, with a random layout."""
    return _Writer(chance).schema()


class _Writer:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.brought: dict[str, dict[str, str]] = {}  # interface -> property types by name
        self.key_interface: str | None = None  # at most one, so that no node type gets two keys

    def coin(self) -> bool:
        return self.chance.random() < 0.5

    def some(self, items: list[str], least: int = 0) -> list[str]:
        return self.chance.sample(items, self.chance.randint(least, len(items))) if items else []

    def schema(self) -> str:
        interfaces = [f"I{number}" for number in range(self.chance.randint(0, 2))]
        nodes = [f"N{number}" for number in range(self.chance.randint(0, 3))]
        edges = [f"E{number}" for number in range(self.chance.randint(0, 2) if nodes else 0)]
        blocks = [self.interface(name) for name in interfaces]
        blocks += [self.node(name) for name in nodes]
        blocks += [self.edge(name, self.chance.choice(nodes), self.chance.choice(nodes)) for name in edges]
        self.chance.shuffle(blocks)
        return self.chance.choice(["", "\ufeff", "// schema\n"]) + "\n".join(blocks)

    def interface(self, name: str) -> str:
        # Names of their own, so that no two declarations disagree; a shared name is tested by hand.
        written, lines, keyed = self.properties(f"{name.lower()}_", may_be_key=self.key_interface is None)
        self.brought[name] = written
        if keyed:
            self.key_interface = name
        return self.block(f"interface {name}", lines)

    def node(self, name: str) -> str:
        implements = self.some(list(self.brought))
        has_key = self.key_interface in implements
        written, lines, keyed = self.properties("", may_be_key=not has_key)
        for interface in implements:
            written |= self.brought[interface]
        rules = self.groups(written, [], may_be_key=not (keyed or has_key)) + self.value_rules(written)
        words = f" implements {', '.join(implements)}" if implements else ""
        return self.block(f"node {name} {self.other_notes()}{words}", lines + rules)

    def edge(self, name: str, source: str, target: str) -> str:
        written, lines, _ = self.properties("", may_be_key=False, on_edge=True)
        rules = self.groups(written, ["@src", "@dst"], may_be_key=True)
        card = self.chance.choice(["", "@card(0..1)", "@card(2..)", "@card(0..)"])
        head = f"edge {name}: {source} -> {target} {card} {self.other_notes()}"
        return self.block(head, lines + rules) if lines or rules or self.coin() else head

    def block(self, head: str, lines: list[str]) -> str:
        body = "".join(line + self.chance.choice(_SEPARATORS) for line in lines)
        return f"{head} {{ {body} }}"

    def type(self) -> str:
        mark = self.chance.choice(["", "?"])
        match self.chance.randint(0, 5):
            case 0:
                return f"[{self.chance.choice(_SCALARS)}]{mark}"
            case 1:
                return f"Vector({self.chance.randint(1, 2**31 - 1)}){mark}"
            case 2:
                return f"enum({', '.join(self.some(_VARIANTS, 1))}{self.chance.choice(['', ','])}){mark}"
            case 3:
                return f"Blob{mark}"
            case _:
                return f"{self.chance.choice(_SCALARS)}{mark}"

    def properties(
        self, prefix: str, *, may_be_key: bool, on_edge: bool = False
    ) -> tuple[dict[str, str], list[str], bool]:
        """Types by name, the lines, and whether a note made a key."""
        written: dict[str, str] = {}
        lines: list[str] = []
        keyed = False
        for name in self.some(_NAMES)[:4]:
            of = self.type()
            notes = [self.other_notes()]
            if may_be_key and not keyed and not on_edge and _fits_key(of) and self.coin():
                notes.append("@key")
                keyed = True
            if _fits_unique(of) and self.coin():
                notes.append("@unique")
            if not of.startswith("Blob") and self.coin():
                notes.append("@index")
            texts = [other for other, kind in written.items() if kind.rstrip("?") == "String"]
            if of.startswith("Vector") and texts and not on_edge and self.coin():
                model = self.chance.choice(["", ', model="m"'])
                notes.append(f'@embed("{self.chance.choice(texts)}"{model})')
            self.chance.shuffle(notes)
            written[prefix + name] = of
            lines.append(f"{prefix}{name}: {of} {' '.join(notes)}")
        return written, lines, keyed

    def other_notes(self) -> str:
        notes: list[str] = []
        if self.coin():
            notes.append(f"@description({string_literal(self.chance.choice(_TEXTS))})")
        if self.coin():
            notes.append(f"@shown{self.chance.choice(_ARGUMENTS)}")
        self.chance.shuffle(notes)
        return " ".join(notes)

    def groups(self, written: dict[str, str], ends: list[str], *, may_be_key: bool) -> list[str]:
        rules: list[str] = []
        keys = [name for name, of in written.items() if _fits_key(of)]
        if may_be_key and (keys or ends) and self.coin():
            members = ends + self.some(keys, 0 if ends else 1)
            self.chance.shuffle(members)
            rules.append(f"@key({', '.join(members)})")
        for kind, names in (
            ("unique", ends + [name for name, of in written.items() if _fits_unique(of)]),
            ("index", ends + [name for name, of in written.items() if not of.startswith("Blob")]),
        ):
            if names and self.coin():
                rules.append(f"@{kind}({', '.join(self.some(names, 1))})")
        return rules

    def value_rules(self, written: dict[str, str]) -> list[str]:
        rules: list[str] = []
        for name, of in written.items():
            if of.rstrip("?") in ("F32", "F64", "I32", "I64", "U32", "U64") and self.coin():
                kind = "F" if of.startswith("F") else "I"
                rules.append(f"@range({name}, {self.chance.choice(_RANGES[kind])})")
            if of.startswith(("String", "enum")) and self.coin():
                rules.append(f"@check({name}, {string_literal(self.chance.choice(_PATTERNS))})")
        return rules


def _fits_unique(of: str) -> bool:
    return not of.startswith(("[", "Vector", "Blob"))


def _fits_key(of: str) -> bool:
    return _fits_unique(of) and not of.endswith("?")
