"""The comparison with LadybugDB at a tiny size: the graph is what it is said to be, answers agree or nothing is timed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.report import Verdict, section_text
from benchmarks.social import SocialSize, social_graph
from benchmarks.social_compare import Asked, Costs, Social, costs_section, measure_social, social_section
from benchmarks.social_engines import SocialLadybug, same_answer
from benchmarks.social_questions import Aim, Question, questions
from benchmarks.timing import Times
from benchmarks.traversal import AnswersDiffer

TINY = SocialSize(people=400, edges=4_000, cities=41, seeds=20)


def test_the_graph_is_the_same_every_time_and_has_the_sizes_asked() -> None:
    social, again = social_graph(TINY), social_graph(TINY)
    assert social == again
    pairs = social.follows.to_pylist()
    assert len({(each["src"], each["dst"]) for each in pairs}) == TINY.edges
    assert all(each["src"] != each["dst"] for each in pairs)
    assert len(set(social.seeds.to_pylist())) == TINY.seeds
    assert social.lives_in.num_rows == social.people.num_rows == TINY.people


def test_degrees_are_skewed_on_both_sides_and_some_follow_nobody() -> None:
    social = social_graph(TINY)
    for side in ("src", "dst"):
        counts = np.array(social.follows.column(side).value_counts().field("counts"))
        assert counts.max() > 4 * TINY.edges / TINY.people
    assert len(social.follows.column("src").unique()) < TINY.people


def test_every_answer_of_the_two_engines_is_the_same_and_none_is_empty(tmp_path: Path) -> None:
    pytest.importorskip("ladybug")
    found = measure_social(TINY, tmp_path, rounds=1, seconds=1.0)
    assert [each.question for each in found.asked] == list(questions())
    assert [each.question.name for each in found.asked if each.rows == 0] == []
    assert found.ours.peak > 0
    assert found.theirs.peak > 0
    assert "say nothing about the targets" in section_text(social_section(found, whole=False))
    assert social_section(found, whole=False).missed == ()
    assert costs_section(found).rows[-1].verdict is not Verdict.NONE


def test_different_answers_stop_the_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ladybug")
    honest = SocialLadybug.ask

    def short(self: SocialLadybug, question: Question) -> pa.Table:
        return honest(self, question).slice(1)

    monkeypatch.setattr(SocialLadybug, "ask", short)
    with pytest.raises(AnswersDiffer):
        measure_social(TINY, tmp_path, rounds=1, seconds=1.0)


def test_answers_are_compared_by_rows_and_floats_by_twelve_digits() -> None:
    one = pa.table({"k": ["b", "a"], "v": [1.0, 2.0]})
    turned = pa.table({"k": ["a", "b"], "v": [2.0 * (1 + 1e-14), 1.0]})
    assert same_answer(one, turned, ordered=False)
    assert not same_answer(one, turned, ordered=True)
    assert not same_answer(one, pa.table({"k": ["a", "b"], "v": [2.001, 1.0]}), ordered=False)
    assert not same_answer(one, one.slice(1), ordered=False)
    assert not same_answer(one, one.rename_columns(["k", "w"]), ordered=False)


def test_an_aim_is_judged_on_the_whole_graph_alone() -> None:
    question = replace(questions()[0], aim=Aim.TEN_TIMES)
    asked = Asked(question, 1, Times((1.0,)), Times((9.0,)))
    found = Social(TINY, (asked, replace(asked, theirs=Times((11.0,)))), Costs(1.0, 1), Costs(1.0, 1), 0.002)
    assert [row.verdict for row in social_section(found, whole=True).rows] == [Verdict.MISSED, Verdict.MET]
    assert social_section(found, whole=False).missed == ()
    assert len(costs_section(found).missed) == 1
