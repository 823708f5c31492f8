"""Random histories of several writers on a store that fails: every answer is compared with what the chain holds.

Each writer works as a client of the product does: base, look-up of its key, publication, and on a conflict the look-up
in what came between and the same write again on the new base; after an unknown outcome the same write under the same
key. Meanwhile others write, branches are deleted and made again, the machine sleeps and clean-up runs.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from manifest.samples import draft, first_version, fork, head, nonce, put, sha
from omnigraph.errors import StorageClass, StorageFailure
from omnigraph.manifest import keys
from omnigraph.manifest.builder import Built, deletion, next_version
from omnigraph.manifest.chain import KnownHead, list_branches, read_version, resolve_head
from omnigraph.manifest.commits import CommitPublished, CommitSuperseded, CommitUndetermined, look_up
from omnigraph.manifest.driver import drive
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.lineage import LogReader
from omnigraph.manifest.logs import find_key
from omnigraph.manifest.markers import mark_deleted
from omnigraph.manifest.model import Idempotency, Manifest
from omnigraph.manifest.publish import (
    Conflict,
    FenceOpen,
    NotPublished,
    OutcomeUnknown,
    Publication,
    Published,
    Result,
    publish,
)
from omnigraph.store.faults import (
    FailCondition,
    Fault,
    FaultStore,
    LandLate,
    LoseAfter,
    LoseBefore,
    Meanwhile,
    Refuse,
    Rule,
    Verb,
)
from omnigraph.store.memory import MemoryStore
from support.clocks import SteppingClock

START_US = 1_767_225_600_000_000
BRANCH = "work"
HOUR = 3600.0

NAPS = [1.0, 400.0, 700.0, 11 * HOUR, 13 * HOUR, 25 * HOUR]
FAULTS: dict[str, Fault] = {
    "refused": Refuse(StorageClass.DENIED),
    "not sent": Refuse(StorageClass.CONNECTION, sent=False),
    "lost": LoseBefore(),
    "landed": LoseAfter(),
    "late": LandLate(after=10**6),
    "soon": LandLate(after=1),
    "busy": FailCondition(),
}


@dataclass
class Write:
    """One job of a client; `ids` are all the commit ids it ever tried, `life` the branch life of its key."""

    job: int
    state: str = "new"  # then: acknowledged, refused, unknown
    life: int = 0
    ids: list[CommitId] = field(default_factory=list[CommitId])
    receipt: CommitId | None = None


class History:
    """The store, its clocks, and the writers' knowledge."""

    def __init__(self) -> None:
        self.clock = SteppingClock(now_us=START_US)
        self.inner = MemoryStore(now=lambda: dt.datetime.fromtimestamp(self.clock.now_us() / 1e6, dt.UTC))
        self.store = FaultStore(self.inner, clock=self.clock)
        self.reader = LogReader(self.store)
        self.known: dict[int, KnownHead] = {}
        self.writes: list[Write] = []
        self.built = 0
        self.met: set[str] = set()
        self.main = head(first_version(now_us=START_US))
        put(self.inner, first_version(now_us=START_US))
        put(self.inner, fork(BRANCH, self.main.manifest))

    # --- what may happen

    def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def fault(self, name: str, times: int, skip: int) -> None:
        self.store.add(Rule(FAULTS[name], verb="create", times=times, skip=skip))

    def interrupt(self, verb: Verb, before: bool, others: int, seconds: float) -> None:
        """The next request of this kind takes long: others write meanwhile, the machine sleeps, clean-up runs."""

        def meanwhile() -> None:
            for _ in range(others):
                self.write(7)
            self.sleep(seconds)
            self.clean_up()

        fault = Meanwhile(before=meanwhile) if before else Meanwhile(after=meanwhile)
        self.store.add(Rule(fault, verb=verb))

    def fail_reads(self, times: int) -> None:
        self.store.add(Rule(Refuse(StorageClass.TIMEOUT), verb="read", times=times))

    def release(self) -> None:
        self.store.release()

    def clean_up(self) -> None:
        """Versions that were superseded more than 24 hours ago go."""
        infos = {info.key: info for info in self.inner.list("__manifest")}
        now = self.clock.now_us() / 1e6
        for key in infos:
            parsed = keys.parse_version_key(key)
            if parsed is None:
                continue
            above = infos.get(keys.folder_version_key(parsed[0], parsed[1] + 1))
            if above is not None and now - above.last_modified.timestamp() > 24 * HOUR:
                self.inner.delete([key])

    def write(self, writer: int) -> None:
        job = Write(len(self.writes) + 1)
        self.writes.append(job)
        self.attempt(writer, job)

    def repeat(self, writer: int) -> None:
        """A client repeats what ended unknown."""
        for job in self.writes:
            if job.state == "unknown":
                self.attempt(writer, job)
                return

    def toggle(self, writer: int) -> None:
        """Delete the branch, or make it again."""
        try:
            base = resolve_head(self.store, BRANCH, clock=self.clock)
        except StorageFailure:
            return
        assert isinstance(base, KnownHead)
        self.built += 1
        name = f"toggle {self.built}"
        built = deletion(base, nonce=name) if base.live else fork(BRANCH, self.main.manifest, target=base, name=name)
        result = self.publish(built, base)
        if isinstance(result, Published):
            self.known[writer] = result.head
            if not base.live:
                return
            mark_deleted(self.store, result.manifest)

    # --- one write

    def attempt(self, writer: int, job: Write) -> None:
        sleeping_base = self.known.get(writer)
        try:
            base = resolve_head(self.store, BRANCH, clock=self.clock, known=sleeping_base)
        except StorageFailure:
            self.finish(job, "refused" if job.state == "new" else "unknown")
            return
        assert isinstance(base, KnownHead)
        for _ in range(4):
            if not base.live or (job.life and base.life != job.life):
                self.finish(job, "refused" if job.state == "new" else "unknown")
                return
            job.life = base.life
            try:
                used = find_key(self.reader, base.manifest, sha(f"key {job.job}"))
            except StorageFailure:
                return
            if used is not None:
                assert used.commit is not None
                job.receipt = used.commit.id
                self.finish(job, "acknowledged")
                return
            built = self.prepared(base, job)
            result = self.publish(built, base)
            match result:
                case Published():
                    self.known[writer] = result.head
                    job.receipt = built.manifest.commits[0].id
                    self.finish(job, "acknowledged")
                    return
                case Conflict():
                    self.known[writer] = base = result.actual
                case NotPublished():
                    self.finish(job, "refused" if job.state == "new" else "unknown")
                    return
                case OutcomeUnknown():
                    self.known.pop(writer, None)
                    self.finish(job, "unknown")
                    return
        self.finish(job, "refused" if job.state == "new" else "unknown")

    @staticmethod
    def finish(job: Write, state: str) -> None:
        job.state = state

    def prepared(self, base: KnownHead, job: Write) -> Built:
        self.built += 1
        wanted = draft(job.job * 1_000 + len(job.ids), idempotency=Idempotency(sha(f"key {job.job}"), sha("body")))
        built = next_version(base, [wanted], now_us=self.clock.now_us(), nonce=f"try {self.built}")
        for segment in built.segments:
            self.inner.put_fresh(segment.key, segment.data)
        job.ids.append(built.manifest.commits[0].id)
        return built

    def publish(self, built: Built, base: KnownHead) -> Result:
        publication = Publication(built.manifest, built.data, base, staged_at=base.known_at)
        result = drive(
            publish(publication),
            store=self.store,
            history=self.reader,
            clock=self.clock,
            fence=FenceOpen,
            log=lambda line: self.met.add(line.event),
        )
        self.met.add(type(result).__name__ + (f" ({result.reason})" if isinstance(result, OutcomeUnknown) else ""))
        return result

    # --- what must hold

    def check(self) -> None:
        top = resolve_head(self.inner, BRANCH, clock=self.clock)
        assert isinstance(top, KnownHead)
        self.check_chain(top)
        log = self.logged(top)
        for job in self.writes:
            if job.life != top.life:
                continue  # its life is over: its log went with it, unless it was forked
            found = [commit_id for commit_id in job.ids if commit_id in log]
            match job.state:
                case "acknowledged":
                    assert found == [job.receipt], (job, found)
                case "refused":
                    assert found == [], (job, found)
                case _:
                    assert len(found) <= 1, (job, found)

    def logged(self, top: KnownHead) -> set[CommitId]:
        records = LogReader(self.inner).newest(top.manifest.lineage, 10**6)
        ids = [record.id for record in records]
        assert len(ids) == len(set(ids))
        times = [record.created_at for record in records]
        assert times == sorted(set(times))
        return set(ids)

    def check_chain(self, top: KnownHead) -> None:
        """Down to what clean-up left, every version is linked to the one below by its digest."""
        above = top.manifest
        while above.base is not None:
            below = read_version(self.inner, BRANCH, above.version - 1)
            if below is None:
                return
            if below.sha256 != above.base.sha256:
                self.check_stray(below.manifest, above)
                return
            above = below.manifest

    def check_stray(self, stray: Manifest, above: Manifest) -> None:
        """Only a sleeper's late request may lie beside the chain, and look-ups don't believe it."""
        self.met.add("a stray")
        for commit in stray.commits:
            found = look_up(
                self.inner,
                LogReader(self.inner),
                commit.id,
                head_of=lambda name: resolve_head(self.inner, name, clock=self.clock),
            )
            assert not isinstance(found.fate, CommitPublished), (stray, above)

    def settle(self) -> None:
        """The faults end: what is unknown is repeated until it is known, and the late requests land after all."""
        self.store.heal()
        for job in self.writes:
            if job.state == "unknown":
                self.attempt(99, job)
                top = resolve_head(self.inner, BRANCH, clock=self.clock)
                if isinstance(top, KnownHead) and top.live and top.life == job.life:
                    assert job.state == "acknowledged", job
        self.store.release()
        self.check()
        self.next_write_gets_through()
        self.outcomes_are_final()

    def next_write_gets_through(self) -> None:
        top = resolve_head(self.store, BRANCH, clock=self.clock)
        assert isinstance(top, KnownHead)
        if not top.live:
            self.toggle(99)
        last = Write(len(self.writes) + 1)
        self.writes.append(last)
        self.attempt(98, last)
        assert last.state == "acknowledged"
        assert [found.branch for found in list_branches(self.store, clock=self.clock).heads] == ["main", BRANCH]

    def outcomes_are_final(self) -> None:
        """Once a version above stands, every attempt has a final answer, and it is the true one."""
        top = resolve_head(self.inner, BRANCH, clock=self.clock)
        assert isinstance(top, KnownHead)
        log = self.logged(top)
        for job in self.writes:
            for commit_id in job.ids:
                fate = look_up(
                    self.inner,
                    self.reader,
                    commit_id,
                    head_of=lambda name: resolve_head(self.inner, name, clock=self.clock),
                ).fate
                assert fate != CommitUndetermined("version_absent"), commit_id
                if commit_id.version >= top.life:
                    assert isinstance(fate, CommitSuperseded) == (commit_id not in log), (commit_id, fate)


writers = st.integers(1, 3)
steps = st.one_of(
    st.tuples(st.just("write"), writers),
    st.tuples(st.just("write"), writers),
    st.tuples(st.just("write"), writers),
    st.tuples(st.just("repeat"), writers),
    st.tuples(st.just("toggle"), writers),
    st.tuples(st.just("fault"), st.sampled_from(sorted(FAULTS)), st.integers(1, 6), st.integers(0, 3)),
    st.tuples(st.just("fault"), st.sampled_from(["late", "lost", "busy", "landed"]), st.just(5), st.just(0)),
    st.tuples(st.just("fail_reads"), st.integers(1, 3)),
    st.tuples(
        st.just("interrupt"),
        st.sampled_from(["create", "read"]),
        st.booleans(),
        st.integers(0, 3),
        st.sampled_from(NAPS),
    ),
    st.tuples(st.just("sleep"), st.sampled_from(NAPS)),
    st.tuples(st.just("release")),
    st.tuples(st.just("clean_up")),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, min_size=8, max_size=40))
@example([("interrupt", "create", True, 3, 25 * HOUR), ("write", 1), ("write", 1)])  # a stray is created
@example(  # a machine that sleeps while the base is read has an old base, however late it is used
    [
        ("write", 2),
        ("write", 2),
        ("release",),
        ("interrupt", "read", False, 2, 25 * HOUR),
        ("release",),
        ("interrupt", "create", False, 1, 1.0),
        ("write", 1),
        ("write", 1),
    ]
)
@example([("fault", "busy", 1, 0), ("interrupt", "read", True, 3, 25 * HOUR), ("write", 1)])
@example(
    [("fault", "late", 1, 0), ("interrupt", "create", True, 3, 25 * HOUR), ("write", 1), ("release",), ("write", 2)]
)
@example([("interrupt", "create", False, 2, 700.0), ("write", 1), ("toggle", 2), ("toggle", 2), ("write", 1)])
def test_every_answer_is_true_of_the_chain_whatever_happens(script: list[tuple[object, ...]]) -> None:
    history = History()
    for what, *given_values in script:
        getattr(history, str(what))(*given_values)
        history.check()
    for job in history.writes:
        event(f"write {job.state}")
    for found in sorted(history.met):
        event(found)
    history.settle()


def test_two_hundred_writes_of_four_clients_with_lost_replies_are_each_there_once() -> None:
    """A tenth of the answers is lost, some before and some after the store acted; clients repeat under their keys."""
    history = History()
    for number in range(200):
        if number % 10 == 3:
            history.fault("landed" if number % 20 == 3 else "lost", 1, 0)
        if number % 50 == 7:
            history.fault("late", 5, 0)
        if number % 97 == 5:
            history.release()
        history.write(number % 4)
        history.repeat(number % 4)
    history.store.heal()
    history.release()
    for job in list(history.writes):
        if job.state == "unknown":
            history.attempt(9, job)
    history.check()
    assert {job.state for job in history.writes} == {"acknowledged"}
    top = resolve_head(history.inner, BRANCH, clock=history.clock)
    assert isinstance(top, KnownHead)
    assert len(history.logged(top)) == 201  # and genesis
    assert nonce(0) in {commit_id.nonce for commit_id in history.logged(top)}
