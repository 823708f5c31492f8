"""The WordNet example: the converter, the excerpt and its answers, the schema and the queries."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from examples.wordnet import check, convert, excerpt, facts, records
from omnigraph.lang.query.check import check as checked_queries
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "wordnet"

LICENCE_LINE = "  1 This software and database is being provided to you, the LICENSEE, by  \n"
DATABASE = {
    "data.noun": LICENCE_LINE
    + "00001740 03 n 01 entity 0 001 ~ 00001930 n 0000 | that which exists  \n"
    + "00001930 03 n 02 physical_entity 0 Thing a 004 @ 00001740 n 0000 + 00001111 v 0201 + 00001111 v 0101 "
    + '-u 00001930 n 0101 | an entity; "the thing"; "a thing"- Locke ; \n',
    "data.verb": "00001111 29 v 01 be 1 001 + 00001930 n 0102 01 + 02 00 | exist  \n",
    "data.adj": "00002222 00 s 01 able(p) 0 002 & 00002222 a 0000 \\ 00001930 n 0102 | having means  \n",
    "data.adv": "00003333 02 r 01 ably 0 001 ;c 00001740 n 0000 | with means  \n",
}


def wordnet_catalog() -> Catalog:
    numbers = itertools.count(1)
    return compile_schema((EXAMPLE / "wordnet.pg").read_text(), mint=lambda: f"{next(numbers):026d}")


@pytest.fixture
def converted(tmp_path: Path) -> dict[str, list[records.Record]]:
    """The four files made of a database of five synsets, by name."""
    for name, text in DATABASE.items():
        (tmp_path / name).write_text(text)
    convert.convert(tmp_path, tmp_path / "out")
    return {name: list(records.read(tmp_path / "out" / name)) for name in records.FILES}


def test_a_synset_has_its_gloss_taken_apart(converted: dict[str, list[records.Record]]) -> None:
    assert converted["synsets.jsonl.gz"][1] == {
        "type": "Synset",
        "data": {
            "key": "n00001930",
            "pos": "n",
            "lexname": "noun.Tops",
            "definition": "an entity",
            "examples": ["the thing", 'a thing"- Locke ;'],
            "word_count": 2,
        },
    }


def test_words_and_senses_are_spelled_as_people_do(converted: dict[str, list[records.Record]]) -> None:
    lemmas = ("entity", "physical entity", "Thing", "be", "able", "ably")
    assert converted["words.jsonl.gz"] == [{"type": "Word", "data": {"lemma": lemma}} for lemma in lemmas]
    thing = {"edge": "Sense", "from": "Thing", "to": "n00001930", "data": {"position": 2, "lex_id": 10}}
    assert thing in converted["senses.jsonl.gz"]


def test_one_direction_of_a_relation_is_kept_and_once_for_two_synsets(
    converted: dict[str, list[records.Record]],
) -> None:
    assert converted["relations.jsonl.gz"] == [
        {"edge": "Derivation", "from": "n00001930", "to": "v00001111", "data": {"via": "Thing"}},
        {"edge": "Derivation", "from": "v00001111", "to": "n00001930", "data": {"via": "be"}},
        {"edge": "DomainTopic", "from": "r00003333", "to": "n00001740"},
        {"edge": "Hypernym", "from": "n00001930", "to": "n00001740"},
        {"edge": "Pertainym", "from": "a00002222", "to": "n00001930", "data": {"via": "able"}},
        {"edge": "Related", "from": "n00001930", "to": "n00001930", "data": {"via": "physical entity"}},
        {"edge": "SimilarTo", "from": "a00002222", "to": "a00002222"},
    ]


def test_equal_records_give_equal_bytes(tmp_path: Path) -> None:
    some = list(itertools.islice(records.read(EXAMPLE / "excerpt.jsonl.gz"), 50))
    records.written(some, tmp_path / "one.jsonl.gz")
    records.written(some, tmp_path / "two.jsonl.gz")
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()
    assert list(records.read(tmp_path / "one.jsonl.gz")) == some


def test_the_excerpt_is_closed_and_has_every_relation() -> None:
    nodes: set[tuple[str, str]] = set()
    relations: set[str] = set()
    for record in records.read(EXAMPLE / "excerpt.jsonl.gz"):
        if "edge" in record:
            relations.add(record["edge"])
            source_type = "Word" if record["edge"] == "Sense" else "Synset"
            assert (source_type, record["from"]) in nodes
            assert ("Synset", record["to"]) in nodes
        elif record["type"] == "Synset":
            nodes.add(("Synset", record["data"]["key"]))
        else:
            nodes.add(("Word", record["data"]["lemma"]))
    assert relations == {"Sense", *records.RELATIONS}
    assert 2_000 < len(nodes) < 5_000


def test_the_excerpt_of_the_excerpt_is_the_excerpt() -> None:
    everything = list(records.read(EXAMPLE / "excerpt.jsonl.gz"))
    assert list(excerpt.excerpt(everything)) == everything


def test_the_excerpt_s_facts_are_those_of_its_records() -> None:
    computed = json.dumps(facts.facts(records.read(EXAMPLE / "excerpt.jsonl.gz")), indent=1)
    assert (EXAMPLE / "facts.json").read_text() == computed + "\n"


@pytest.mark.parametrize(
    ("least", "most", "reached"),
    [(1, 1, {"b", "a"}), (1, 2, {"a", "b", "c"}), (2, 2, {"c"}), (2, 9, {"c"}), (3, 9, set[str]())],
)
def test_hops_are_shortest_distances_and_a_loop_is_one_step(least: int, most: int, reached: set[str]) -> None:
    edges = {"a": ["a", "b"], "b": ["a", "c", "c"], "c": ["a"]}
    assert facts.reached(edges, "a", least, most) == reached


def test_the_schema_has_the_nineteen_relations_and_a_word_where_the_data_has_one() -> None:
    catalog = wordnet_catalog()
    assert set(catalog.edges) == {"Sense", *records.RELATIONS}
    with_word = {
        record["edge"]
        for record in records.read(EXAMPLE / "excerpt.jsonl.gz")
        if "edge" in record and "via" in record.get("data", {})
    }
    has_via = {name for name, edge in catalog.edges.items() if any(each.name == "via" for each in edge.properties)}
    assert with_word <= has_via
    assert {"AlsoSee", "Antonym", "Derivation", "DomainRegion", "DomainTopic", "DomainUsage", "Participle"} <= has_via
    assert not has_via & {"Hypernym", "PartHolonym", "SimilarTo", "Sense"}


def test_the_notice_of_princeton_stands_beside_the_excerpt() -> None:
    notice = (EXAMPLE / "LICENSE-WORDNET").read_text()
    assert "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved." in notice
    assert 'SOFTWARE AND DATABASE IS PROVIDED "AS IS"' in notice


def test_the_example_queries_fit_the_schema() -> None:
    checked = checked_queries((EXAMPLE / "queries.gq").read_text(), wordnet_catalog())
    assert len(checked) >= 10


def test_every_fact_has_a_question_that_fits_the_schema() -> None:
    known = json.loads((EXAMPLE / "facts.json").read_text())
    asked = list(check.questions(known))
    assert len(asked) == len(known) - 1 + len(known["counts"])
    for _, question, _ in asked:
        assert len(checked_queries(question.source, wordnet_catalog())) == 1


def test_a_fact_without_a_question_is_refused() -> None:
    with pytest.raises(KeyError):
        list(check.questions({"the meaning of life": 42}))


def test_the_excerpt_loads_and_every_answer_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = check.check(str(tmp_path / "wordnet.omni"), EXAMPLE / "excerpt.jsonl.gz", EXAMPLE / "facts.json")
    printed = capsys.readouterr().out
    assert right, printed
    assert "35 of 35 answers are right" in printed


def test_a_wrong_answer_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = {"senses of 'dog'": ["n02084071"], "hyponyms{1,1} of n02084071": 18}
    (tmp_path / "facts.json").write_text(json.dumps(known))
    assert not check.check(str(tmp_path / "wordnet.omni"), EXAMPLE / "excerpt.jsonl.gz", tmp_path / "facts.json")
    assert "1 of 2 answers are right" in capsys.readouterr().out
