"""Writers of one branch take turns, in one process and between those of a host, so that none starves."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import omnigraph
from omnigraph.engine.lanes import Lanes

SCHEMA = "node Port { code: String @key }"
ROUNDS = 12

WRITER = """
import sys
import omnigraph
graph = omnigraph.open(sys.argv[1])
for number in range(int(sys.argv[3])):
    graph.load([{"type": "Port", "data": {"code": f"{sys.argv[2]}-{number}"}}], mode="append", progress=False)
"""


def test_handles_of_one_process_share_the_lanes_of_a_root(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "g", schema=SCHEMA)
    first, second = (omnigraph.open(tmp_path / "g") for _ in range(2))
    assert first.core.lanes is second.core.lanes
    failures: list[BaseException] = []

    def write(name: str) -> None:
        graph = omnigraph.open(tmp_path / "g")
        try:
            for number in range(ROUNDS):
                graph.load([{"type": "Port", "data": {"code": f"{name}-{number}"}}], mode="append", progress=False)
        except BaseException as error:  # a thread's failure is the test's to show
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert first.query("query q() { match { $p: Port } return { count($p) as n } }").scalar() == 4 * ROUNDS


def test_processes_that_write_without_pause_all_come_through(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "g", schema=SCHEMA)
    command = [sys.executable, "-c", WRITER, str(tmp_path / "g")]
    writers = [subprocess.Popen([*command, name, str(ROUNDS)], stderr=subprocess.PIPE) for name in "abc"]
    for writer in writers:
        _, said = writer.communicate(timeout=240)
        assert writer.returncode == 0, said.decode()
    graph = omnigraph.open(tmp_path / "g")
    assert graph.query("query q() { match { $p: Port } return { count($p) as n } }").scalar() == 3 * ROUNDS


def test_a_lane_that_cant_be_had_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with Lanes(str(tmp_path / "file")).enter("main", alone=True):
        pass


def test_a_lane_that_can_not_be_closed_fails_no_write_that_was_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    closed: list[int] = []

    def close(descriptor: int) -> None:
        closed.append(descriptor)
        os.close(descriptor)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("omnigraph.engine.hosts.os", SimpleNamespace(**{**vars(os), "close": close}))
    for code in "AB":
        assert graph.mutate("query add($c: String) { insert Port { code: $c } }", c=code).commit is not None
    assert len(closed) == 2, "the lane was left, and taken again"


def test_a_holder_that_stands_still_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.engine.hosts._WAIT_SECONDS_MAX", 0.05)
    with Lanes(str(tmp_path)).enter("main"), Lanes(str(tmp_path)).enter("main"):
        pass


def test_a_lane_is_taken_in_arrival_order() -> None:
    lanes, order, started = Lanes(), list[int](), threading.Barrier(2)
    threads: list[threading.Thread] = []

    def enter(number: int) -> None:
        started.wait()
        with lanes.enter("main", alone=True):
            order.append(number)

    with lanes.enter("main", alone=True):
        for number in range(5):
            threads.append(threading.Thread(target=enter, args=(number,)))
            threads[-1].start()
            started.wait()
            while len(lanes._lanes["main"].tickets) <= number + 1:
                pass
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]
    assert lanes._lanes == {}


def test_who_is_interrupted_while_waiting_holds_up_nobody() -> None:
    lanes, done, waiting = Lanes(), threading.Event(), threading.Event()

    def interrupted() -> None:
        try:
            with lanes.enter("main") as ticket:
                waiting.set()
                ticket.publish(_Entry(), _interrupts)
        except KeyboardInterrupt:
            done.set()

    with lanes.enter("main", alone=True):
        thread = threading.Thread(target=interrupted)
        thread.start()
    thread.join()
    assert done.is_set()
    with lanes.enter("main", alone=True):
        pass
    assert lanes._lanes == {}


def test_what_waits_behind_one_that_wants_the_lane_to_itself_is_not_published_before_it() -> None:
    lanes, published = Lanes(), list[str]()
    late = threading.Event()

    def shared() -> None:
        with lanes.enter("main") as ticket:
            late.set()
            entry = _Entry()
            ticket.publish(entry, lambda _: (published.append("shared"), setattr(entry, "settled", True))[0])

    with lanes.enter("main") as first:
        alone = threading.Thread(target=lambda: _alone(lanes, published))
        alone.start()
        while len(lanes._lanes["main"].tickets) < 2:
            pass
        behind = threading.Thread(target=shared)
        behind.start()
        entry = _Entry()
        first.publish(entry, lambda _: (published.append("first"), setattr(entry, "settled", True))[0])
        assert not late.is_set()
    alone.join()
    behind.join()
    assert published == ["first", "alone", "shared"]


class _Entry:
    settled = False


def _interrupts(_: object) -> None:
    raise KeyboardInterrupt


def _alone(lanes: Lanes, published: list[str]) -> None:
    with lanes.enter("main", alone=True):
        published.append("alone")


def test_a_process_that_never_stops_writing_lets_others_have_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.engine.hosts._WAIT_SECONDS_MAX", 1e6)  # nobody goes on without the lock
    lanes, other, stop = Lanes(str(tmp_path)), Lanes(str(tmp_path)), threading.Event()

    def without_pause() -> None:
        while not stop.is_set():
            with lanes.enter("main"):
                pass

    threads = [threading.Thread(target=without_pause) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            with other.enter("main", alone=True):
                pass
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("alone", [False, True])
def test_an_interrupt_between_any_two_calls_leaves_a_lane_that_others_go_on_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: bool
) -> None:
    monkeypatch.setattr("omnigraph.engine.lanes._LOOK_SECONDS", 0.01)
    lanes = Lanes(str(tmp_path))
    stopped = 0
    for place in range(1, 10_000):
        ended = _interrupted(lambda: _writes(lanes, alone=alone), place)
        other = threading.Thread(target=lambda: _writes(lanes, alone=not alone), daemon=True)
        other.start()
        other.join(20)
        assert not other.is_alive(), f"interrupted at its {place}th call, it holds up the others"
        if ended:
            break
        stopped += 1
    assert stopped > 50
    assert lanes._lanes == {} or lanes._lanes["main"].tickets == []


def _writes(lanes: Lanes, *, alone: bool) -> None:
    with lanes.enter("main", alone=alone) as ticket:
        ticket.publish(_Entry(), _settled)


def _settled(ready: list[_Entry]) -> None:
    for each in ready:
        each.settled = True


def _interrupted(work: Callable[[], None], place: int) -> bool:
    """Runs it in a thread that is interrupted at the beginning of a function or after a call; whether it ended before that."""
    ended: list[bool] = []

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal place
        place -= event in ("call", "c_return")  # where the interpreter looks for a signal
        if place == 0:
            sys.setprofile(None)
            raise KeyboardInterrupt

    def run() -> None:
        try:
            sys.setprofile(counted)
            work()
        except (KeyboardInterrupt, RuntimeError):
            ended.append(False)
        else:
            ended.append(True)
        finally:
            sys.setprofile(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert ended, "it never ended"
    return ended[0]
