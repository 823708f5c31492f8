"""WordNet as load records: the four kinds, and how their files are read and written.

A record is one JSON object as `omnigraph load` takes it. This module knows no database and no WordNet file format.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

RELATIONS = (
    "AlsoSee",
    "Antonym",
    "Attribute",
    "Cause",
    "Derivation",
    "DomainRegion",
    "DomainTopic",
    "DomainUsage",
    "Entailment",
    "Hypernym",
    "InstanceHypernym",
    "MemberHolonym",
    "PartHolonym",
    "Participle",
    "Pertainym",
    "Related",
    "SimilarTo",
    "SubstanceHolonym",
    "VerbGroup",
)

FILES = ("synsets.jsonl.gz", "words.jsonl.gz", "senses.jsonl.gz", "relations.jsonl.gz")


class SynsetData(TypedDict):
    key: str
    pos: Literal["n", "v", "a", "s", "r"]
    lexname: str
    definition: str
    examples: list[str]
    word_count: int


class SynsetRecord(TypedDict):
    type: Literal["Synset"]
    data: SynsetData


class WordData(TypedDict):
    lemma: str


class WordRecord(TypedDict):
    type: Literal["Word"]
    data: WordData


class SenseData(TypedDict):
    position: int
    lex_id: int


SenseRecord = TypedDict("SenseRecord", {"edge": Literal["Sense"], "from": str, "to": str, "data": SenseData})


class RelationData(TypedDict):
    via: str


RelationRecord = TypedDict("RelationRecord", {"edge": str, "from": str, "to": str, "data": NotRequired[RelationData]})

Record = SynsetRecord | WordRecord | SenseRecord | RelationRecord


def written(records: Iterable[Record], path: Path) -> int:
    """Write one record a line, gzipped without time or file name so that equal records give equal bytes; the count."""
    count = 0
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as lines,
    ):
        for record in records:
            lines.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
            count += 1
    return count


def read(path: Path) -> Iterator[Record]:
    """The records of one file, gzipped or not."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def read_folder(folder: Path) -> Iterator[Record]:
    """The records of the four files, nodes first. Raises FileNotFoundError naming the first that is missing."""
    for name in FILES:
        yield from read(folder / name)
