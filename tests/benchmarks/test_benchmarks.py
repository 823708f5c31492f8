"""Each measurement runs at a tiny size, counts what it should and compares equal answers; no time is judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.budgets import NOT_OWNING, budget_section, count_budgets
from benchmarks.contestants import PlainGraphBLAS
from benchmarks.history import history_section, measure_histories
from benchmarks.latency import Rate, latency_section, rate_of
from benchmarks.load_ratio import load_section, measure_load
from benchmarks.local_rate import Rates, measure_local_rate, rate_section
from benchmarks.manifest_size import largest_manifest, size_section
from benchmarks.report import Row, Section, Verdict, document, section_text
from benchmarks.servers import ObjectStorage, through_proxy
from benchmarks.startup import measure_help, startup_section
from benchmarks.timing import Times, in_turns, ratio
from benchmarks.traversal import AnswersDiffer, measure_traversal, traversal_section
from benchmarks.wordnet_data import VARIABLE, WordNet, wordnet
from support.seaweed import S3Server


@pytest.fixture
def storage(s3_server: S3Server) -> Iterator[ObjectStorage]:
    with through_proxy(s3_server) as running:
        yield running


@pytest.fixture
def excerpt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WordNet:
    monkeypatch.delenv(VARIABLE, raising=False)
    return wordnet(None, tmp_path)


def test_every_operation_keeps_its_budget_of_requests(storage: ObjectStorage) -> None:
    counted = count_budgets(storage.proxy, storage.fresh_root(), rows=9_000, repeats=2)
    assert [(c.operation, c.requests, c.most) for c in counted if not c.kept] == []
    by_name = {c.operation: c for c in counted}
    assert by_name["point read by key, columns in memory"].requests == 0
    assert by_name["merge that only adopts tables"].requests == 1
    assert by_name["insert one keyed row"].requests >= 4  # data, transaction, version, manifest: none is missed
    assert by_name["point read by key, 3 columns, not in memory; no index"].requests > 0
    looks = [seen.verb for repeat in by_name[NOT_OWNING].repeats for seen in repeat if seen.verb == "HEAD"]
    assert len(looks) <= len(by_name[NOT_OWNING].repeats), (
        "one look at what is followed, and not one for each of its steps"
    )
    assert {c.operation for c in counted if c.most is None} == {
        name for name in by_name if name.endswith("; no index") or name.startswith("… the first")
    }, "the rest have budgets"
    text = section_text(budget_section(counted, rows=9_000))
    assert "this version builds none" in " ".join(text.split())
    assert text.count("\n| ") == len(counted) + 2


def test_opening_costs_the_same_whatever_the_history(storage: ObjectStorage, tmp_path: Path) -> None:
    short, long = measure_histories(storage, tmp_path, lengths=(2, 80), repeats=1)
    assert (short.requests, short.verbs) == (long.requests, long.verbs)
    assert short.kept
    assert "80 commits" in section_text(history_section([short, long]))


def test_writers_under_latency_are_counted(storage: ObjectStorage) -> None:
    rate = rate_of(storage.proxy, storage.fresh_root(), writers=2, seconds=0.5, latency=0.001)
    assert rate.commits >= 2
    assert storage.proxy.latency_seconds == 0.0
    section = latency_section([Rate(True, 1, 10, 1.0), Rate(False, 8, 10, 1.0)])
    assert [row.verdict for row in section.rows] == [Verdict.MET, Verdict.MISSED]


def test_a_manifest_with_a_full_window_is_found_and_measured(tmp_path: Path) -> None:
    size = largest_manifest(tmp_path / "g", types=2, keys=False)
    assert size.records == 191
    assert 10_000 < size.bytes < 64 * 1024
    assert size_section([size], types=2).missed == ()


def test_the_bare_script_and_our_writer_both_commit(tmp_path: Path) -> None:
    rates = measure_local_rate(tmp_path, rounds=2, commits=3)
    assert len(list((tmp_path / "rate" / "bare" / "chain").glob("*.json"))) == 9
    assert len(list((tmp_path / "rate" / "graph" / "__manifest" / "main").glob("*.json"))) == 10
    assert "bare script" in section_text(rate_section(rates, one_fsync=0.001))
    assert Rates(1, Times((2.0, 4.0)), Times((1.0, 2.0))).share == 0.5


def test_a_load_and_a_raw_write_hold_the_same_rows(tmp_path: Path, excerpt: WordNet) -> None:
    load = measure_load(excerpt, tmp_path, rounds=1)
    assert load.counts_agree
    assert load.entities > 1_000
    section = load_section(load)
    assert section.missed == ()  # the excerpt says nothing about the target
    text = section_text(section)
    assert "excerpt" in text
    assert "with an idempotency key" in text


def test_the_three_answers_of_a_traversal_are_the_same(tmp_path: Path, excerpt: WordNet) -> None:
    pytest.importorskip("ladybug")
    found = measure_traversal(excerpt, tmp_path, seeds=30, steps=(1, 2, 3), rounds=1)
    assert all(hop.rows > 0 for hop in found.hops)
    assert len(found.hops) == 6
    assert "LadybugDB" in section_text(traversal_section(found))


def test_different_answers_stop_the_traversal(
    tmp_path: Path, excerpt: WordNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ladybug")
    honest = PlainGraphBLAS.pairs
    monkeypatch.setattr(PlainGraphBLAS, "pairs", lambda self, steps: honest(self, steps).slice(1))
    with pytest.raises(AnswersDiffer):
        measure_traversal(excerpt, tmp_path, seeds=5, steps=(1,), rounds=1)


def test_help_is_timed_beside_an_idle_python() -> None:
    starts = measure_help(rounds=1)
    assert starts.processor["help"].least > 0
    assert len(startup_section(starts).rows) == 2


def test_all_wordnet_is_one_file_of_its_four_parts(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        wordnet(tmp_path, tmp_path)


def test_turns_begin_with_another_one_each_time_and_ratios_are_of_rounds() -> None:
    order: list[str] = []
    times = in_turns({name: lambda name=name: order.append(name) for name in "ab"}, rounds=3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [len(each.seconds) for each in times.values()] == [3, 3]
    assert ratio(Times((2.0, 30.0, 2.0)), Times((1.0, 10.0, 1.0))) == 2.0


def test_a_report_aligns_numbers_and_names_what_was_missed() -> None:
    section = Section("T", "About.", ("what", "n"), (Row(("a", "10")), Row(("bb", "7"), Verdict.MISSED)))
    text = document([section], preface="# P")
    assert "| a    | 10 |            |\n| bb   |  7 | **missed** |" in text
    assert section.missed == (section.rows[1],)
