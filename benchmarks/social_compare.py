"""The social graph asked in both engines: same answers first, then times in turns, memory, and the cost of a plan."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Row, Section, Verdict, judged
from benchmarks.social import SocialGraph, SocialSize, social_graph
from benchmarks.social_engines import Params, SocialLadybug, SocialOmnigraph, chosen, peak_bytes, same_answer
from benchmarks.social_questions import Aim, Question, questions
from benchmarks.timing import Times, in_turns, ratio, shown
from benchmarks.traversal import AnswersDiffer
from omnigraph.engine.receipts import as_datetime
from omnigraph.lang.query.params import choose_query
from omnigraph.lang.query.typed import ReadQuery
from omnigraph.query.expressions import Scope
from omnigraph.query.plan import plan_pattern
from omnigraph.query.run import SnapshotStatistics

PLAN_SECONDS_MAX = 0.001
_PLANS = 25
_WARM = 6
_LONG_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Asked:
    question: Question
    rows: int
    ours: Times
    theirs: Times

    @property
    def times_faster(self) -> float:
        return ratio(self.theirs, self.ours)


@dataclass(frozen=True, slots=True)
class Costs:
    """`loaded`: seconds from Arrow tables in memory to the disk. `peak`: bytes."""

    loaded: float
    peak: int


@dataclass(frozen=True, slots=True)
class Social:
    """`plan`: of the question whose cached plan takes longest, its least seconds."""

    size: SocialSize
    asked: tuple[Asked, ...]
    ours: Costs
    theirs: Costs
    plan: float


def measure_social(size: SocialSize, scratch: Path, *, rounds: int, seconds: float) -> Social:
    """Every question in at most so many rounds, fewer (one at least) if they would take longer than `seconds`.

    Raises AnswersDiffer.
    """
    folder, file = scratch / "social" / "graph", scratch / "social" / "ladybug.db"
    folder.parent.mkdir(parents=True)
    params, loads = _loaded(social_graph(size), folder, file)
    ours, theirs = SocialOmnigraph(folder, params), SocialLadybug(file, params)
    asked = tuple(_asked(question, ours, theirs, rounds, seconds) for question in questions())
    plan = max(_plan_seconds(question, ours) for question in questions())
    costs = (
        Costs(loads[0], peak_bytes(SocialOmnigraph, folder, params)),
        Costs(loads[1], peak_bytes(SocialLadybug, file, params)),
    )
    return Social(size, asked, *costs, plan)


def _loaded(social: SocialGraph, folder: Path, file: Path) -> tuple[Params, tuple[float, float]]:
    """Both engines filled: what questions begin with, and the seconds that each took."""
    ours = _seconds(lambda: SocialOmnigraph.load(folder, social))
    theirs = _seconds(lambda: SocialLadybug.load(file, social))
    return {"one": social.one, "many": social.seeds.to_pylist()}, (ours, theirs)


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _asked(question: Question, ours: SocialOmnigraph, theirs: SocialLadybug, rounds: int, seconds: float) -> Asked:
    began = time.perf_counter()
    answer, other = ours.ask(question), theirs.ask(question)
    once = time.perf_counter() - began
    if not same_answer(answer, other, ordered=question.ordered):
        raise AnswersDiffer(f"{question.name}, from {question.begin}")
    for _ in range(_WARM):  # what was looked up row by row a few times becomes resident
        if once > _LONG_SECONDS:
            break
        ours.ask(question)
        theirs.ask(question)
    fitting = max(1, min(rounds, int(seconds / once)))
    times = in_turns({"ours": lambda: ours.ask(question), "theirs": lambda: theirs.ask(question)}, rounds=fitting)
    return Asked(question, answer.num_rows, times["ours"], times["theirs"])


def _plan_seconds(question: Question, ours: SocialOmnigraph) -> float:
    """From a text that was asked before to its plan."""
    core = ours.graph.core
    snapshot = core.head_snapshot("main")
    scope = Scope(chosen(ours.params, question), as_datetime(core.clock.now_us()))

    def plan() -> None:
        queries = core.checked.queries(question.gq, snapshot.catalog, snapshot.manifest.schema)
        query = choose_query(queries, None, source=question.gq)
        assert isinstance(query, ReadQuery)
        plan_pattern(query.pattern, SnapshotStatistics(snapshot, scope))

    plan()
    return in_turns({"plan": plan}, rounds=_PLANS, settle=lambda: None)["plan"].least


# --- sections


def social_section(found: Social, *, whole: bool) -> Section:
    """`whole`: the graph has the size that the targets are about."""
    size = found.size
    begins = {"one": "1", "many": f"{size.seeds:,}", "all": "all"}

    def row(each: Asked) -> Row:
        aim = each.question.aim
        cells = (
            begins[each.question.begin], each.question.name, f"{each.rows:,}", shown(each.ours.median),
            shown(each.theirs.median), f"{each.times_faster:.1f}", f"{aim.value:g}",
        )  # fmt: skip
        return Row(cells, judged(aim.holds(each.times_faster)) if whole else Verdict.NONE)

    fewest, most = (f(len(each.ours.seconds) for each in found.asked) for f in (min, max))
    how = (
        "Both run in this process, by turns, everything warm, and hand over Arrow tables; LadybugDB may use every "
        "processor. A path is counted as often as it can be walked; a person is at the distance of the shortest path. "
        "The people to begin with are a list parameter. "
        f"{most} rounds, fewer where they take long, {fewest} at least."
    )
    notes = [how]
    if not whole:
        notes.append("A small graph, where fixed costs weigh more: these numbers say nothing about the targets.")
    return Section(
        "A social graph, beside LadybugDB",
        f"{size.people:,} people in {size.cities:,} cities, {size.edges:,} distinct pairs of who follows whom, degrees "
        "skewed on both sides, made by a generator. The same questions in .gq and in Cypher, from one person, from "
        f"{size.seeds:,} and over all; the answers of the two are checked to be the same. The targets: never slower "
        f"than LadybugDB, {Aim.TEN_TIMES.value:g} times faster on steps from 1,000 people, a read by key in at most twice "
        "its time.",
        ("from", "question", "rows", "OmniGraph", "LadybugDB", "× faster", "at least"),
        tuple(map(row, found.asked)),
        tuple(notes),
    )


def costs_section(found: Social) -> Section:
    """What is reported beside the questions."""
    mib = 1 << 20
    return Section(
        "… and what it costs",
        "Loading is from Arrow tables in memory onto the disk: with OmniGraph types, keys and edge ends are checked and "
        "every file is fsynced. Memory is what a new process takes at most to open what was loaded and to ask every "
        "question once. A plan is of a text that was asked before, looked up and planned; the least time of the slowest "
        "question, since what else the machine does can only add to it.",
        ("what", "OmniGraph", "LadybugDB", "under"),
        (
            Row(("loading", shown(found.ours.loaded), shown(found.theirs.loaded), "")),
            Row(("greatest memory", f"{found.ours.peak // mib:,} MiB", f"{found.theirs.peak // mib:,} MiB", "")),
            Row(
                ("cached parse and plan", shown(found.plan), "–", shown(PLAN_SECONDS_MAX)),
                judged(found.plan < PLAN_SECONDS_MAX),
            ),
        ),
    )
