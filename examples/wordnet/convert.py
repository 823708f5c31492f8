"""Turn the database files of WordNet 3.0 into load records.

    python -m examples.wordnet.convert /usr/share/wordnet out/

reads `data.noun`, `data.verb`, `data.adj` and `data.adv` (in Debian: package `wordnet-base`) and writes
`synsets.jsonl.gz`, `words.jsonl.gz`, `senses.jsonl.gz` and `relations.jsonl.gz`. The format of the database files is
described in wndb(5WN). Of each pair of inverse relations one direction is kept: hypernyms and not hyponyms, holonyms and
not meronyms, domains and not their members. A relation between words (and not whole synsets) carries in `via` the word
at its source.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from examples.wordnet.records import (
    Record,
    RelationRecord,
    SenseRecord,
    SynsetRecord,
    WordRecord,
    written,
)

PARTS_OF_SPEECH = (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r"))

# The lexicographer files by number, lexnames(5WN).
LEXNAMES = (
    *("adj.all", "adj.pert", "adv.all", "noun.Tops", "noun.act", "noun.animal", "noun.artifact", "noun.attribute"),
    *("noun.body", "noun.cognition", "noun.communication", "noun.event", "noun.feeling", "noun.food", "noun.group"),
    *("noun.location", "noun.motive", "noun.object", "noun.person", "noun.phenomenon", "noun.plant"),
    *("noun.possession", "noun.process", "noun.quantity", "noun.relation", "noun.shape", "noun.state"),
    *("noun.substance", "noun.time", "verb.body", "verb.change", "verb.cognition", "verb.communication"),
    *("verb.competition", "verb.consumption", "verb.contact", "verb.creation", "verb.emotion", "verb.motion"),
    *("verb.perception", "verb.possession", "verb.social", "verb.stative", "verb.weather", "adj.ppl"),
)

# Pointer symbols of wninput(5WN). The inverses that are left out: ~ ~i %m %s %p, and -c -r -u between whole synsets.
EDGE_OF_SYMBOL = {
    "^": "AlsoSee",
    "!": "Antonym",
    "=": "Attribute",
    ">": "Cause",
    "+": "Derivation",
    ";r": "DomainRegion",
    ";c": "DomainTopic",
    ";u": "DomainUsage",
    "*": "Entailment",
    "@": "Hypernym",
    "@i": "InstanceHypernym",
    "#m": "MemberHolonym",
    "#p": "PartHolonym",
    "<": "Participle",
    "\\": "Pertainym",
    "&": "SimilarTo",
    "#s": "SubstanceHolonym",
    "$": "VerbGroup",
}
EDGE_OF_WORD_SYMBOL = {**EDGE_OF_SYMBOL, "-c": "Related", "-r": "Related", "-u": "Related"}

ADJECTIVE_MARKER = re.compile(r"\((?:a|p|ip)\)$")  # where the adjective may stand; not part of the word


@dataclass(frozen=True, slots=True)
class Word:
    lemma: str
    lex_id: int


@dataclass(frozen=True, slots=True)
class Pointer:
    symbol: str
    target: str
    source_word: int  # 1 for the first word of the synset, 0 if the pointer is between whole synsets


@dataclass(frozen=True, slots=True)
class Synset:
    """One line of a data file."""

    key: str
    pos: str
    lexname: str
    words: tuple[Word, ...]
    pointers: tuple[Pointer, ...]
    gloss: str


def parsed(line: str, part: str) -> Synset:
    """One line of `data.*`; `part` is the letter that its file stands for. Numbers of words are hexadecimal."""
    fields, _, gloss = line.partition("|")
    offset, lexicographer, pos, word_count, *rest = fields.split()
    words_end = 2 * int(word_count, 16)
    words = tuple(
        Word(ADJECTIVE_MARKER.sub("", rest[at]).replace("_", " "), int(rest[at + 1], 16))
        for at in range(0, words_end, 2)
    )
    first = words_end + 1
    pointers = tuple(
        Pointer(rest[at], rest[at + 2] + rest[at + 1], int(rest[at + 3][:2], 16))
        for at in range(first, first + 4 * int(rest[words_end]), 4)
    )
    return Synset(part + offset, pos, LEXNAMES[int(lexicographer)], words, pointers, gloss.strip())


def read_database(folder: Path) -> Iterator[Synset]:
    """All synsets, nouns first. Raises FileNotFoundError if a data file is missing."""
    for name, part in PARTS_OF_SPEECH:
        with (folder / f"data.{name}").open(encoding="ascii") as lines:
            for line in lines:
                if not line.startswith(" "):  # the licence at the top is indented
                    yield parsed(line, part)


def definition_and_examples(gloss: str) -> tuple[str, list[str]]:
    """A gloss is a definition, then examples in double quotes; who said an example may follow its closing quote."""
    definition, *examples = gloss.split('; "')
    return definition, [example.strip('" ') for example in examples]


def synset_records(synsets: Iterable[Synset]) -> Iterator[SynsetRecord]:
    for synset in synsets:
        definition, examples = definition_and_examples(synset.gloss)
        yield {
            "type": "Synset",
            "data": {
                "key": synset.key,
                "pos": synset.pos,  # pyright: ignore[reportReturnType]  # the file holds no other letters
                "lexname": synset.lexname,
                "definition": definition,
                "examples": examples,
                "word_count": len(synset.words),
            },
        }


def word_records(synsets: Iterable[Synset]) -> Iterator[WordRecord]:
    lemmas = dict.fromkeys(word.lemma for synset in synsets for word in synset.words)
    for lemma in lemmas:
        yield {"type": "Word", "data": {"lemma": lemma}}


def sense_records(synsets: Iterable[Synset]) -> Iterator[SenseRecord]:
    for synset in synsets:
        for position, word in enumerate(synset.words, 1):
            yield {
                "edge": "Sense",
                "from": word.lemma,
                "to": synset.key,
                "data": {"position": position, "lex_id": word.lex_id},
            }


def relation_records(synsets: Iterable[Synset]) -> Iterator[RelationRecord]:
    """By relation, then as the database has them. Several word pairs of one relation and two synsets give one edge."""
    edges: dict[tuple[str, str, str], str | None] = {}
    for synset in synsets:
        for pointer in synset.pointers:
            edge = (EDGE_OF_WORD_SYMBOL if pointer.source_word else EDGE_OF_SYMBOL).get(pointer.symbol)
            if edge is not None:
                via = synset.words[pointer.source_word - 1].lemma if pointer.source_word else None
                edges.setdefault((edge, synset.key, pointer.target), via)
    for (edge, source, target), via in sorted(edges.items(), key=lambda item: item[0][0]):
        record: RelationRecord = {"edge": edge, "from": source, "to": target}
        if via is not None:
            record["data"] = {"via": via}
        yield record


def convert(database: Path, out: Path) -> dict[str, int]:
    """Write the four files; how many records each has."""
    synsets = list(read_database(database))
    out.mkdir(parents=True, exist_ok=True)
    files: dict[str, Iterable[Record]] = {
        "synsets.jsonl.gz": synset_records(synsets),
        "words.jsonl.gz": word_records(synsets),
        "senses.jsonl.gz": sense_records(synsets),
        "relations.jsonl.gz": relation_records(synsets),
    }
    return {name: written(records, out / name) for name, records in files.items()}


def main() -> None:
    arguments = argparse.ArgumentParser(description="Turn the database files of WordNet 3.0 into load records.")
    arguments.add_argument("database", type=Path, help="folder of data.noun and the others, e.g. /usr/share/wordnet")
    arguments.add_argument("out", type=Path, help="folder for the four .jsonl.gz files; made if absent")
    chosen = arguments.parse_args()
    for name, count in convert(chosen.database, chosen.out).items():
        print(f"{count:>9,}  {name}")


if __name__ == "__main__":
    main()
