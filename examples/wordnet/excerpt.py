"""Cut a small closed graph out of all WordNet.

    python -m examples.wordnet.excerpt out/ examples/wordnet/excerpt.jsonl.gz

takes the folder that `convert` wrote. The excerpt holds everything below a few nouns, every sense of a few words with
what is related to it in any way, everything above all these, and all their words. An edge is in it if both its ends are,
so no edge lacks an end. Each of the nineteen relations occurs.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from examples.wordnet.facts import reached, reversed_edges
from examples.wordnet.records import RELATIONS, Record, read_folder, written

SUBTREES = ("n02083346", "n02120997", "n03791235")  # canine, feline, motor vehicle
WORDS = (
    "dog",
    "cat",
    "car",
    "bird",
    "sleep",
    "breathe",
    "walk",
    "cold",
    "good",
    "quickly",
    "avenged",
    "Cuba",
    "Laika",
    "unicycle",
)
UPWARDS = ("Hypernym", "InstanceHypernym")
DEPTH_MAX = 99  # deeper than any path of WordNet


class Edges:
    """The edges of each type, both ways, as lists of targets by source."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.out: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for record in records:
            if "edge" in record:
                self.out[record["edge"]][record["from"]].append(record["to"])
        self.back = {edge: reversed_edges(targets) for edge, targets in self.out.items()}


def chosen_synsets(edges: Edges) -> set[str]:
    """Keys of the excerpt's synsets."""
    below = [reached(edges.back["Hypernym"], root, 1, DEPTH_MAX) for root in SUBTREES]
    senses = {key for word in WORDS for key in edges.out["Sense"][word]}
    related = {
        target
        for relation in RELATIONS
        for key in senses
        for target in (*edges.out[relation].get(key, []), *edges.back[relation].get(key, []))
    }
    start = set(SUBTREES).union(senses, related, *below)
    upwards: dict[str, list[str]] = defaultdict(list)
    for relation in UPWARDS:
        for source, targets in edges.out[relation].items():
            upwards[source] += targets
    return start.union(*(reached(upwards, key, 1, DEPTH_MAX) for key in start))


def excerpt(records: list[Record]) -> Iterator[Record]:
    """The records of the excerpt, in the order they came."""
    edges = Edges(records)
    synsets = chosen_synsets(edges)
    nodes = synsets.union(word for key in synsets for word in edges.back["Sense"].get(key, []))
    for record in records:
        if "edge" in record:
            inside = record["from"] in nodes and record["to"] in synsets
        elif record["type"] == "Synset":
            inside = record["data"]["key"] in synsets
        else:
            inside = record["data"]["lemma"] in nodes
        if inside:
            yield record


def main() -> None:
    arguments = argparse.ArgumentParser(description="Cut a small closed graph out of all WordNet.")
    arguments.add_argument("folder", type=Path, help="folder with the four files that convert wrote")
    arguments.add_argument("out", type=Path, help="the file to write, .jsonl.gz")
    chosen = arguments.parse_args()
    count = written(excerpt(list(read_folder(chosen.folder))), chosen.out)
    print(f"{count:>9,}  {chosen.out.name}")


if __name__ == "__main__":
    main()
