"""The right answers about a WordNet graph, computed from its records in plain Python, without any database.

    python -m examples.wordnet.facts examples/wordnet/excerpt.jsonl.gz

prints them as JSON; the argument is a file of records, or a folder with the four files. Slow and simple on purpose: this
is what a database is judged by.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from examples.wordnet.records import RELATIONS, Record, read, read_folder

Facts: TypeAlias = dict[str, object]
Targets: TypeAlias = Mapping[str, list[str]]

DOG = "n02084071"  # the animal
ENTITY = "n00001740"  # the root of all nouns


@dataclass
class Graph:
    """The records by type; edges as lists of targets by source."""

    pos: dict[str, str] = field(default_factory=dict[str, str])
    lexname: dict[str, str] = field(default_factory=dict[str, str])
    words: set[str] = field(default_factory=set[str])
    out: dict[str, dict[str, list[str]]] = field(default_factory=dict[str, dict[str, list[str]]])

    def add(self, record: Record) -> None:
        if "edge" in record:
            by_source = self.out.setdefault(record["edge"], defaultdict(list))
            by_source[record["from"]].append(record["to"])
        elif record["type"] == "Synset":
            self.pos[record["data"]["key"]] = record["data"]["pos"]
            self.lexname[record["data"]["key"]] = record["data"]["lexname"]
        else:
            self.words.add(record["data"]["lemma"])

    def edges(self, edge: str) -> Targets:
        return self.out.get(edge, {})

    def count(self, edge: str) -> int:
        return sum(map(len, self.edges(edge).values()))


def reversed_edges(edges: Targets) -> Targets:
    back: dict[str, list[str]] = defaultdict(list)
    for source, targets in edges.items():
        for target in targets:
            back[target].append(source)
    return back


def reached(edges: Targets, start: str, least: int, most: int) -> set[str]:
    """Nodes whose shortest distance from `start` is between the two, by breadth-first search.

    A node is at distance 1 from itself if it has an edge to itself, and at no other distance.
    """
    distance = {start: 0}
    ring = [start]
    for step in range(1, most + 1):
        found = {target for source in ring for target in edges.get(source, [])} - distance.keys()
        distance.update(dict.fromkeys(found, step))
        ring = sorted(found)
    answer = {node for node, steps in distance.items() if least <= steps}
    if least == 1 and start in edges.get(start, []):
        answer.add(start)
    return answer


def pairs(edges: Targets) -> set[tuple[str, str]]:
    return {(source, target) for source, targets in edges.items() for target in targets}


def top(counted: Mapping[str, int], size: int) -> list[tuple[str, int]]:
    """The greatest counts first, equal ones by name."""
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:size]


def facts(records: Iterable[Record]) -> Facts:
    """The answers, by the question's name."""
    graph = Graph()
    for record in records:
        graph.add(record)
    hypernyms = graph.edges("Hypernym")
    hyponyms = reversed_edges(hypernyms)
    senses = graph.edges("Sense")
    words_of = reversed_edges(senses)
    derivation = pairs(graph.edges("Derivation"))
    with_car = {word for synset in senses.get("car", []) for word in words_of[synset]}
    return {
        "counts": {
            "Synset": len(graph.pos),
            "Word": len(graph.words),
            "Sense": graph.count("Sense"),
            **{relation: graph.count(relation) for relation in RELATIONS},
        },
        "lexname top5": top(Counter(graph.lexname.values()), 5),
        "senses of 'dog'": sorted(set(senses.get("dog", []))),
        f"words of {DOG}": sorted(set(words_of.get(DOG, []))),
        f"hyponyms{{1,1}} of {DOG}": len(reached(hyponyms, DOG, 1, 1)),
        f"hyponyms{{1,3}} of {DOG}": len(reached(hyponyms, DOG, 1, 3)),
        f"hypernyms{{1,20}} of {DOG}": len(reached(hypernyms, DOG, 1, 20)),
        f"hyponyms{{3,3}} of {ENTITY}": len(reached(hyponyms, ENTITY, 3, 3)),
        "top5 by direct hyponyms": turned(top({key: len(below) for key, below in hyponyms.items()}, 5)),
        "words with most senses": turned(top({word: len(synsets) for word, synsets in senses.items()}, 5)),
        "noun synsets without hypernym": sum(pos == "n" and not hypernyms.get(key) for key, pos in graph.pos.items()),
        "words sharing a synset with 'car'": len(with_car - {"car"}),
        "pairs derivation{1,1}": len(derivation),
        "pairs derivation to itself": sum(source == target for source, target in derivation),
    }


def turned(counted: list[tuple[str, int]]) -> list[tuple[int, str]]:
    return [(count, name) for name, count in counted]


def main() -> None:
    arguments = argparse.ArgumentParser(description="Compute the right answers about a WordNet graph in plain Python.")
    arguments.add_argument("source", type=Path, help="a file of records, or a folder with the four files")
    source: Path = arguments.parse_args().source
    print(json.dumps(facts(read_folder(source) if source.is_dir() else read(source)), indent=1))


if __name__ == "__main__":
    main()
