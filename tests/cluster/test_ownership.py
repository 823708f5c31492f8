"""One writing process for each local root: the lock goes with its process, and embedded writes take it too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

import omnigraph
from omnigraph.cluster.ownership import LOCK_KEY, acquire, cluster_of, shared
from omnigraph.errors import LockHeld, StorageClass, StorageFailure

CHECKOUT = Path(__file__).resolve().parents[2]
SCHEMA = "node Port { code: String @key }\n"
INSERT = "query add($c: String) { insert Port { code: $c } }"
CODES = "query q() { match { $p: Port } return { $p.code as c } order { c } }"

HOLDER = """
import sys
from omnigraph.cluster.ownership import acquire, shared
with acquire(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_elsewhere(root: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock until the block ends."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder
        assert holder.stdin is not None
        holder.stdin.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A cluster with one graph."""
    omnigraph.init(tmp_path / "graphs" / "atlas.omni", schema=SCHEMA)
    with acquire(str(tmp_path)):
        pass
    return tmp_path


def test_a_lock_held_by_another_process_is_refused_at_once_and_names_it(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as holder, pytest.raises(LockHeld, match=f"process {holder.pid}") as refused:
        acquire(str(tmp_path))
    assert (refused.value.code, refused.value.effects) == ("state_lock_held", "none")
    with acquire(str(tmp_path)) as ownership:
        assert ownership.sole


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with acquire(str(tmp_path)):
            pass


def test_the_same_process_does_not_get_it_twice(tmp_path: Path) -> None:
    with acquire(str(tmp_path)), pytest.raises(LockHeld):
        acquire(str(tmp_path))


def test_a_root_on_object_storage_is_never_held_alone() -> None:
    assert not acquire("s3://harbour/quay").sole


def test_a_lock_file_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("data")
    (tmp_path / "__cluster").mkdir()
    (tmp_path / LOCK_KEY).symlink_to(precious)
    with pytest.raises(StorageFailure) as refused:
        acquire(str(tmp_path))
    assert refused.value.to_dict()["storage_failure"] == {"class": "local_io", "phase": "lock"}
    assert precious.read_text() == "data"


# --- the embedded door


@pytest.mark.parametrize(
    "spelling", ["{root}/graphs/atlas.omni", "file://{root}/graphs/atlas.omni", "relative", "link"]
)
def test_an_embedded_write_is_refused_at_once_while_another_process_has_the_lock(
    root: Path, spelling: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root / "graphs")
    link = tmp_path_factory.mktemp("links") / "mine"
    link.symlink_to(root / "graphs" / "atlas.omni")
    uri = {"relative": "atlas.omni", "link": str(link)}.get(spelling, spelling.format(root=root))
    graph = omnigraph.open(uri)
    graph.branches.create("b")
    writes = [
        lambda: graph.mutate(INSERT, c="A"),
        lambda: graph.load([{"type": "Port", "data": {"code": "A"}}], mode="append"),
        lambda: graph.load([{"type": "Port", "data": {"code": "A"}}], mode="append", branch="new", from_="main"),
        lambda: graph.branches.create("c"),
        lambda: graph.branches.delete("b"),
        lambda: graph.schema.apply(SCHEMA + "node Quay { code: String @key }"),
        lambda: graph.on("b").mutate(INSERT, c="A"),
        lambda: omnigraph.init(root / "graphs" / "tides.omni", schema=SCHEMA),
    ]
    with held_elsewhere(root):
        for write in writes:
            with pytest.raises(LockHeld) as refused:
                write()
            assert refused.value.effects == "none"
        assert graph.query(CODES).scalars() == [], "reading takes no lock"
    assert [b.name for b in graph.branches.list()] == ["main", "b"]
    graph.mutate(INSERT, c="A")
    assert graph.query(CODES).scalars() == ["A"]


def test_the_lock_is_held_for_the_write_alone(root: Path) -> None:
    graph = omnigraph.open(root / "graphs" / "atlas.omni")
    graph.mutate(INSERT, c="A")
    with acquire(str(root)):
        pass
    with pytest.raises(omnigraph.OmnigraphError):
        graph.mutate("query add() { insert Port { cod: 1 } }")
    with acquire(str(root)):
        pass


def test_threads_of_one_process_share_the_lock(root: Path) -> None:
    omnigraph.init(root / "graphs" / "tides.omni", schema=SCHEMA)
    graphs = [omnigraph.open(root / "graphs" / f"{name}.omni") for name in ("atlas", "tides")]
    codes = [f"{n:02}" for n in range(6)]
    failed: list[BaseException] = []

    def write(graph: omnigraph.Graph, code: str) -> None:
        try:
            graph.mutate(INSERT, c=code)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(graph, code)) for graph in graphs for code in codes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert [graph.query(CODES).scalars() for graph in graphs] == [codes, codes]
    with acquire(str(root)):
        pass


def test_a_graph_outside_a_cluster_takes_no_lock(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graphs" / "atlas.omni", schema=SCHEMA)
    graph.mutate(INSERT, c="A")
    assert os.listdir(tmp_path) == ["graphs"], "no cluster was made of the folder"
    assert cluster_of(tmp_path / "atlas.omni") is None
    assert cluster_of("s3://harbour/quay/graphs/atlas.omni") is None


def test_a_cluster_that_comes_to_be_later_is_noticed(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graphs" / "atlas.omni", schema=SCHEMA)
    with acquire(str(tmp_path)), pytest.raises(LockHeld):
        graph.mutate(INSERT, c="A")


# --- keys whose last write is undecided (cluster.md 8)


LEAVER = """
import sys
from omnigraph.cluster.ownership import acquire, shared
from omnigraph.errors import StorageClass
with acquire(sys.argv[1]) as ownership:
    ownership.poisoned.add("__cluster/state.json", "ledger", StorageClass.TIMEOUT)
print("left", flush=True)
sys.stdin.read()
"""


def test_a_clean_end_with_a_poisoned_key_does_not_release_the_lock(tmp_path: Path) -> None:
    leaver = subprocess.Popen(
        [sys.executable, "-c", LEAVER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
    )
    with leaver:
        assert leaver.stdout is not None
        assert leaver.stdout.readline() == "left\n"
        with pytest.raises(LockHeld, match=f"process {leaver.pid}"):
            acquire(str(tmp_path))
        _, told = leaver.communicate("", timeout=60)
    assert leaver.returncode == 0
    assert told.splitlines() == [
        "storage key poisoned kind=ledger class=timeout phase=ledger",
        "cluster lock retained reason=poisoned key poisoned_keys=1",
    ]
    with acquire(str(tmp_path)):
        pass


def test_a_process_that_poisoned_a_key_goes_on_writing_under_the_lock_it_keeps(tmp_path: Path) -> None:
    root = str(tmp_path)
    (tmp_path / "__cluster").mkdir()
    with shared(root) as first:
        assert first is not None
        first.poisoned.add("__cluster/state.json", "ledger", StorageClass.TIMEOUT)
    with shared(root) as second, shared(root) as third:
        assert second is first
        assert third is first
    with pytest.raises(LockHeld):
        acquire(root)


def test_a_retained_lock_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr("omnigraph.cluster.ownership.log_event", lambda *words, **more: told.append((words[-1], more)))
    ownership = acquire("s3://harbour/quay")
    ownership.retain("containment")
    ownership.poisoned.add("k", "ledger", StorageClass.TIMEOUT)
    ownership.release()
    assert told == [
        ("cluster lock retained", {"reason": "containment", "poisoned_keys": 0}),
        ("storage key poisoned", {"kind": "ledger", "class": "timeout", "phase": "ledger"}),
    ]


def test_a_poisoned_key_is_told_once_as_a_warning_without_its_name() -> None:
    poisoned = acquire("s3://harbour/quay").poisoned
    with capture_logs() as lines:
        for _ in range(2):
            poisoned.add("__cluster/state.json", "ledger", StorageClass.THROTTLED)
    assert lines == [
        {
            "event": "storage key poisoned",
            "log_level": "warning",
            "kind": "ledger",
            "class": "throttled",
            "phase": "ledger",
        },
    ]
