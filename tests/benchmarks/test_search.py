"""The comparison with LanceDB at a tiny size: the best scores agree, or nothing is timed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import search
from benchmarks.report import Verdict, section_text
from benchmarks.search import FULL, Searched, SearchSize, measure_search, search_section
from benchmarks.timing import Times
from benchmarks.traversal import AnswersDiffer

EXCERPT = Path(__file__).resolve().parents[2] / "examples" / "wordnet" / "excerpt.jsonl.gz"
TINY = SearchSize(600, 8)


def test_both_engines_are_asked_the_same_and_agree(tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    found = measure_search(EXCERPT, tmp_path, size=TINY, rounds=1)
    assert [each.name for each in found] == ["text, relevance", "vector, all of them compared", "both, fused"]
    assert "LanceDB" in section_text(search_section(found, size=TINY))


def test_answers_that_differ_end_the_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lancedb")
    other = pa.table({"n": pa.array(range(10)), "score": pa.array(np.full(10, 0.5, np.float32))})
    monkeypatch.setattr(search._LanceDB, "vector", lambda *_: other)
    with pytest.raises(AnswersDiffer, match="vector"):
        measure_search(EXCERPT, tmp_path, size=TINY, rounds=1)


def test_a_target_is_judged_at_the_full_size_alone() -> None:
    slow = (Searched("text", Times((2.0,)), Times((1.0,))),)
    assert [row.verdict for row in search_section(slow, size=FULL).rows] == [Verdict.MISSED]
    assert [row.verdict for row in search_section(slow, size=TINY).rows] == [Verdict.NONE]
