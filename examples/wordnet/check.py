"""Load WordNet into a fresh graph and ask for every known answer by query.

    python -m examples.wordnet.check URI examples/wordnet/excerpt.jsonl.gz examples/wordnet/facts.json

The source is a file of records, or the folder with the four files that `convert` writes. Prints one line for each answer
and exits 1 if one differs. A fact that no question is known for is an error and never skipped.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import omnigraph
from examples.wordnet.records import FILES

SCHEMA = Path(__file__).with_name("wordnet.pg")


Rows: TypeAlias = Sequence[Mapping[str, object]]
Ask: TypeAlias = Callable[[str, Mapping[str, object]], Rows]  # query text and parameters -> rows, by whatever door


@dataclass(frozen=True)
class Question:
    """A query whose rows, taken through `shape`, are the answer."""

    source: str
    shape: Callable[[Rows], object]
    params: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class Answer:
    name: str
    expected: object
    got: object
    seconds: float

    @property
    def right(self) -> bool:
        return self.expected == self.got


def number(rows: Rows) -> object:
    """The only value of the only row."""
    ((value,),) = (row.values() for row in rows)
    return value


def column(name: str) -> Callable[[Rows], object]:
    return lambda rows: [row[name] for row in rows]


def lists(*names: str) -> Callable[[Rows], object]:
    """Rows as lists, the columns in this order."""
    return lambda rows: [[row[name] for name in names] for row in rows]


def nodes(node_type: str) -> Question:
    return Question(f"query q() {{ match {{ $n: {node_type} }} return {{ count($n) as n }} }}", number)


def edge_rows(edge_type: str) -> Question:
    word = edge_type[0].lower() + edge_type[1:]
    return Question(f"query q() {{ match {{ $a $e:{word} $b }} return {{ count($e.@id) as n }} }}", number)


def reached(start: str, hop: str) -> Question:
    source = f"query q($key: String) {{ match {{ $s: Synset {{ key: $key }}  {hop} }} return {{ count($x) as n }} }}"
    return Question(source, number, {"key": start})


FIXED = {
    "lexname top5": Question(
        """query q() {
             match { $s: Synset } return { $s.lexname as lexname, count($s) as n } order { n desc } limit 5
           }""",
        lists("lexname", "n"),
    ),
    "senses of 'dog'": Question(
        'query q() { match { $w: Word { lemma: "dog" }  $w sense $s } return { $s.key as key } order { key } }',
        column("key"),
    ),
    "top5 by direct hyponyms": Question(
        """query q() {
             match { $h hypernym $s } return { $s.key as key, count($h) as n } order { n desc } limit 5
           }""",
        lists("n", "key"),
    ),
    "words with most senses": Question(
        """query q() {
             match { $w sense $s } return { $w.lemma as lemma, count($s) as n } order { n desc } limit 5
           }""",
        lists("n", "lemma"),
    ),
    "noun synsets without hypernym": Question(
        'query q() { match { $s: Synset { pos: "n" }  not { $s hypernym $_ } } return { count($s) as n } }', number
    ),
    "words sharing a synset with 'car'": Question(
        """query q() {
             match {
               $other: Word
               $other.lemma != "car"
               exists { $w: Word { lemma: "car" }  $w sense $s  $other sense $s }
             }
             return { count($other) as n }
           }""",
        number,
    ),
    "pairs derivation{1,1}": Question(
        "query q() { match { $a derivation{1,1} $b } return { count($a) as n } }", number
    ),
    "pairs derivation to itself": Question(
        "query q() { match { $a derivation $a } return { count($a) as n } }", number
    ),
}

WORDS_OF = re.compile(r"words of (\w+)")
REACHED = re.compile(r"(hyponyms|hypernyms)(\{\d+,\d+\}) of (\w+)")


def question(name: str) -> Question:
    """The question of a fact. Raises KeyError if there is none."""
    if match := WORDS_OF.fullmatch(name):
        source = """query q($key: String) {
                      match { $s: Synset { key: $key }  $w sense $s } return { $w.lemma as lemma } order { lemma }
                    }"""
        return Question(source, column("lemma"), {"key": match[1]})
    if match := REACHED.fullmatch(name):
        hop = f"$x hypernym{match[2]} $s" if match[1] == "hyponyms" else f"$s hypernym{match[2]} $x"
        return reached(match[3], hop)
    return FIXED[name]


def questions(facts: Mapping[str, object]) -> Iterator[tuple[str, Question, object]]:
    """Name, question and right answer of every fact; the counts one by one."""
    for name, expected in facts.items():
        if name == "counts":
            assert isinstance(expected, dict)
            for entity_type, count in expected.items():
                asked = nodes(entity_type) if entity_type in ("Synset", "Word") else edge_rows(entity_type)
                yield f"count of {entity_type}", asked, count
        else:
            yield name, question(name), expected


def answers(ask: Ask, facts: Mapping[str, object]) -> Iterator[Answer]:
    """Ask for every fact."""
    for name, asked, expected in questions(facts):
        began = time.perf_counter()
        got = asked.shape(ask(asked.source, asked.params))
        yield Answer(name, expected, got, time.perf_counter() - began)


def asks(graph: omnigraph.Graph) -> Ask:
    """The door of the Python API."""
    return lambda source, params: list(graph.query(source, params))


def sources(data: Path) -> list[Path]:
    return [data / name for name in FILES] if data.is_dir() else [data]


def lines(path: Path) -> Iterator[bytes]:
    with gzip.open(path, "rb") as unpacked:
        yield from unpacked


def load(graph: omnigraph.Graph, data: Path) -> None:
    """One commit a file; nodes come first."""
    for path in sources(data):
        began = time.perf_counter()
        loaded = graph.load(lines(path), mode="append")
        seconds = time.perf_counter() - began
        print(f"  loaded {path.name:<22} {loaded.total_entities:>9,} entities  {seconds:6.2f} s")


def shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 44 else text[:43] + "…"


def reported(found: Iterable[Answer]) -> bool:
    """Print a line for each answer. True if every one is right."""
    verdicts: list[bool] = []
    for answer in found:
        verdicts.append(answer.right)
        verdict = "ok   " if answer.right else "WRONG"
        print(f"  {verdict} {answer.name:<34} {1000 * answer.seconds:8.1f} ms  {shown(answer.got)}")
        if not answer.right:
            print(f"        expected {json.dumps(answer.expected)}\n        got      {json.dumps(answer.got)}")
    print(f"  {sum(verdicts)} of {len(verdicts)} answers are right")
    return all(verdicts)


def check(uri: str, data: Path, facts_path: Path) -> bool:
    """Load and ask; prints a table. True if every answer is right."""
    facts: dict[str, object] = json.loads(facts_path.read_text())
    print(f"WordNet from {data.name} into {uri}")
    with omnigraph.init(uri, schema=SCHEMA) as graph:
        load(graph, data)
        return reported(answers(asks(graph), facts))


def main() -> int:
    arguments = argparse.ArgumentParser(description="Load WordNet into a fresh graph and check every known answer.")
    arguments.add_argument(
        "uri", help="where to make the graph: a folder that does not exist yet, or s3://bucket/prefix"
    )
    arguments.add_argument("data", type=Path, help="a file of records, or a folder with the four files")
    arguments.add_argument("facts", type=Path, help="the right answers, as facts.py prints them")
    chosen = arguments.parse_args()
    return 0 if check(chosen.uri, chosen.data, chosen.facts) else 1


if __name__ == "__main__":
    raise SystemExit(main())
