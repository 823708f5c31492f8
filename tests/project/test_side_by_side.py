"""Work in as many threads as are to be had."""

from __future__ import annotations

import threading

import pytest

from omnigraph.side_by_side import side_by_side


def test_results_come_in_order_whoever_was_first() -> None:
    begun = threading.Barrier(3)

    def work(item: int) -> int:
        begun.wait(timeout=30)
        return -item

    assert side_by_side(work, [1, 2, 3], at_most=3, name="t") == [-1, -2, -3]
    assert side_by_side(str, [], at_most=3, name="t") == []


def test_no_more_run_at_a_time_than_are_allowed() -> None:
    running, most, guard = 0, 0, threading.Lock()

    def work(item: int) -> None:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.01)
        with guard:
            running -= 1

    side_by_side(work, range(12), at_most=3, name="t")
    assert most <= 3


def test_where_no_thread_is_to_be_had_the_caller_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    threads = side_by_side(lambda _: threading.current_thread(), range(5), at_most=4, name="t")
    assert set(threads) == {threading.current_thread()}


def test_the_first_error_is_raised_once_all_have_ended() -> None:
    ended: list[int] = []

    def work(item: int) -> None:
        if item in (1, 2):
            raise ValueError(item)
        ended.append(item)

    with pytest.raises(ValueError, match="1"):
        side_by_side(work, range(6), at_most=2, name="t")
    assert sorted(ended) == [0, 3, 4, 5]


def test_after_an_interrupt_nothing_more_is_begun() -> None:
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side(work, range(9), at_most=1, name="t")
    assert begun == [0]


def test_an_interrupt_of_the_caller_alone_waits_for_the_others_and_begins_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one does that arrives while it waits for them."""
    caller, taken, ended = threading.current_thread(), threading.Event(), list[int]()
    join, interrupts = threading.Thread.join, iter([KeyboardInterrupt])

    def work(item: int) -> None:
        if threading.current_thread() is caller:
            taken.set()
            return
        taken.wait(timeout=30)
        threading.Event().wait(0.1)
        ended.append(item)

    def interrupted(self: threading.Thread, timeout: float | None = None) -> None:
        for each in interrupts:
            raise each
        join(self, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        side_by_side(work, range(2), at_most=2, name="t")
    assert len(ended) == 1
