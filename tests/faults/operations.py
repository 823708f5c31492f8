"""Every operation there is, as the laboratory runs it: what it does, where it publishes, and who could stand in its way.

An operation gets a handle and an idempotency key, and answers by label, since some consist of several writes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from faults.lab import Answer, Definite, Done, Doubt, Lab, answer_of, told
from faults.oracle import (
    SCHEMA,
    WITHOUT_MARKS,
    WITHOUT_NOTES,
    WITHOUT_PORTS,
    Deed,
    accepted,
    also,
    gone,
    marked,
    nothing,
    only,
    put,
)
from faults.truth import require
from faults.worlds import NOTE, OLD_KEY
from omnigraph.engine.effects import definite_failures
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import init_core
from omnigraph.engine.reading.context import Context
from omnigraph.errors import OmnigraphError, StorageClass, StorageFailure, StoragePhase
from support.grouping import Together

LABEL = "subject"
DELETION = "the deletion"
KEY = "a-key"
PORT = "query m($m: String) { insert Port { code: $m, mark: $m } }"
RIVAL_PORT = "query m($c: String, $m: String) { insert Port { code: $c, mark: $m } }"
BUOY = "query m($m: String) { insert Buoy { code: $m, mark: $m } }"
FERRY = 'query m($m: String) { insert Ferry { from: "A", to: "B", mark: $m } }'
LEG = 'query m($m: String) { insert Leg { from: "A", to: "B", mark: $m } }'
UPDATE = 'query m($m: String) { update Port set { mark: $m } where code = "A" }'
DELETE = 'query m() { delete Port where code = "C" }'
WITH_PIER = SCHEMA + "node Pier { code: String @key }\n"
WITH_DOCK = SCHEMA + "node Dock { code: String @key }\n"

Answers = dict[str, Answer]
Act = Callable[[Lab, str | None], Answers]


@dataclass(frozen=True, eq=False)
class Operation:
    """`deeds` by label; `bare`, likewise, the branch and state of the versions without commits that it publishes. `rivals`:
    what others may do meanwhile, by name.
    """

    number: int
    name: str
    act: Act
    branch: str = "main"
    deeds: Mapping[str, Deed] = field(default_factory=dict[str, Deed])
    world: str = "plain"
    keyed: bool = True
    bare: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    reads: bool = False
    rivals: Mapping[str, Callable[[Lab], None]] = field(default_factory=dict[str, Callable[[Lab], None]])
    shares: bool = False  # writes of the same handle may go on while it prepares
    cold: bool = False  # opens the graph itself
    again: bool = False  # may be repeated in doubt without a key, since a second one changes nothing
    twin: bool = True  # another process may send the same request under the same key

    def publishes_on(self, label: str) -> str:
        """The branch that an answer is about."""
        return self.bare.get(label, (self.branch, ""))[0]


def _made(lab: Lab, key: str | None) -> Answers:
    def make() -> None:
        with definite_failures():  # as at the public door, which makes its own store
            init_core(lab.root, SCHEMA, owner=lab.owner, store=lab.store, clock=lab.clock, fence=lab.fence)

    return {LABEL: told(make)}


def made_by_another(lab: Lab) -> None:
    lab.rival_branches(
        "makes the graph", lambda: init_core(lab.root, SCHEMA, store=lab.witness, clock=lab.clock, exist_ok=True)
    )


def _single(work: Callable[[Graph, str | None], Any]) -> Act:
    return lambda lab, key: {LABEL: told(lambda: work(lab.graph, key))}


def _mutation(text: str, branch: str = "main", **more: Any) -> Act:
    def work(graph: Graph, key: str | None) -> Any:
        params = {"m": LABEL} if "$m" in text else {}
        return graph.mutate(text, params, branch=branch, message=LABEL, idempotency_key=key, **more)

    return _single(work)


def _load(records: list[dict[str, Any]], mode: Any, branch: str = "main", from_: str | None = None) -> Act:
    def work(graph: Graph, key: str | None) -> Any:
        return graph.load(
            records, mode=mode, branch=branch, from_=from_, message=LABEL, idempotency_key=key, progress=False
        )

    return _single(work)


# --- what others do


def _writes(
    what: str, text: str, deed: Callable[[str], Deed], branch: str = "main", **params: Any
) -> Callable[[Lab], None]:
    def act(lab: Lab) -> None:
        number = lab.rivals + 1
        label = f"rival-{number}"

        def work(graph: Graph, message: str) -> None:
            given = {**params, **({"m": message} if "$m" in text else {})}
            graph.mutate(text, given, branch=branch, message=message)

        lab.rival(f"{what} on '{branch}' ({label})", deed(label), work)

    return act


def appends_note(branch: str = "main") -> Callable[[Lab], None]:
    return _writes("a note", NOTE, lambda m: put("Note", text=m), branch)


def appends_port(branch: str = "main") -> Callable[[Lab], None]:
    return _writes("a port", PORT, lambda m: put("Port", code=m, mark=m), branch)


def appends_ferry(branch: str = "main") -> Callable[[Lab], None]:
    return _writes("a ferry", FERRY, lambda m: put("Ferry", **{"from": "A", "to": "B", "mark": m}), branch)


def appends_buoy(branch: str = "main") -> Callable[[Lab], None]:
    return _writes("a buoy", BUOY, lambda m: put("Buoy", code=m, mark=m), branch)


def same_port(branch: str = "main") -> Callable[[Lab], None]:
    return _writes("the same port", RIVAL_PORT, lambda m: put("Port", code=LABEL, mark=m), branch, c=LABEL)


def updates_port(branch: str = "main") -> Callable[[Lab], None]:
    return _writes("an update", UPDATE, lambda m: marked("A", m), branch)


def deletes_port(branch: str = "main") -> Callable[[Lab], None]:
    return _writes("a delete", DELETE, lambda m: gone("C"), branch)


def ferry_at_c(branch: str = "main") -> Callable[[Lab], None]:
    text = 'query m($m: String) { insert Ferry { from: "A", to: "C", mark: $m } }'
    return _writes("a ferry at C", text, lambda m: put("Ferry", **{"from": "A", "to": "C", "mark": m}), branch)


def applies(text: str, branch: str = "main") -> Callable[[Lab], None]:
    def act(lab: Lab) -> None:
        lab.rival(
            f"another schema on '{branch}'",
            accepted(text),
            lambda graph, label: graph.on(branch).schema.apply(text, allow_data_loss=True, message=label),
        )

    return act


def makes(name: str) -> Callable[[Lab], None]:
    return lambda lab: lab.rival_branches(f"makes '{name}'", lambda: lab.other.branches.create(name))


def removes(name: str) -> Callable[[Lab], None]:
    return lambda lab: lab.rival_branches(f"deletes '{name}'", lambda: lab.other.branches.delete(name))


def makes_anew(name: str) -> Callable[[Lab], None]:
    def work(lab: Lab) -> None:
        lab.other.branches.delete(name)
        lab.other.branches.create(name)

    return lambda lab: lab.rival_branches(f"deletes '{name}' and makes it anew", lambda: work(lab))


def comes_and_goes(name: str) -> Callable[[Lab], None]:
    def work(lab: Lab) -> None:
        lab.other.branches.create(name)
        lab.other.branches.delete(name)

    return lambda lab: lab.rival_branches(f"makes '{name}' and deletes it", lambda: work(lab))


def branches_off(name: str) -> Callable[[Lab], None]:
    return lambda lab: lab.rival_branches(
        f"makes a child of '{name}'", lambda: lab.other.branches.create(f"{name}/child", from_=name)
    )


def _on(
    branch: str, *, related: Any, conflicting: Any, unrelated: Any = appends_buoy, drop: str = WITHOUT_PORTS
) -> Any:
    """What others may do to a write on a branch."""
    found = {
        "unrelated": unrelated(branch),
        "related": related(branch),
        "conflicting": conflicting(branch),
        "schema": applies(WITH_DOCK, branch),
        "drop": applies(drop, branch),
        "narrow": applies(WITHOUT_MARKS, branch),
    }
    if branch != "main":
        found |= {"anew": makes_anew(branch), "gone": removes(branch)}
    return found


# --- operations of more than one answer


def _grouped(lab: Lab, key: str | None) -> Answers:
    """One write, and three that wait for its publication."""
    graph = lab.graph

    def write(text: str, label: str) -> Callable[[], Any]:
        suffix = None if key is None else f"{key}-{label}"
        return lambda: graph.mutate(text, m=label, message=label, idempotency_key=suffix)

    texts = {"subject-1": PORT, "subject-2": NOTE, "subject-3": FERRY}
    done = Together(lab, lambda: told(write(PORT, LABEL)), [write(text, label) for label, text in texts.items()])
    answers: Answers = {LABEL: done.first}
    for label, result in zip(texts, done.results, strict=True):
        answers[label] = answer_of(result)
    return answers


def _merged(*, delete: bool) -> Act:
    def act(lab: Lab, key: str | None) -> Answers:
        answer = told(
            lambda: lab.graph.branches.merge("side", "main", delete_branch=delete, message=LABEL, idempotency_key=key)
        )
        return {LABEL: answer, **_deletion(answer)}

    return act


def _deletion(answer: Answer) -> Answers:
    """What a merge says of the deletion that follows it."""
    if not isinstance(answer, Done) or answer.value.branch_deleted is None:
        return {}
    if answer.value.branch_deleted:
        return {DELETION: Done(None)}
    said = answer.value.branch_delete_error_details
    require(said.get("effects") in ("none", "unknown"), f"a deletion that failed says nothing of its effects: {said}")
    if said["effects"] == "unknown":
        return {DELETION: Doubt(None, said)}
    error = StorageFailure if said["code"] == "storage_failure" else OmnigraphError
    more = {"cls": StorageClass.TIMEOUT, "phase": StoragePhase.PUBLISH} if error is StorageFailure else {}
    return {DELETION: Definite(error(said["error"], code=said["code"], effects="none", **more))}


def optimized(graph: Graph, label: str, branch: str = "main") -> Any:
    """By an actor of this name. What fails in the building of all that there is to build is raised."""
    done = Graph(Context(graph.core, actor=label)).maintenance.optimize(branch)
    failed = [each.error for each in done.types if each.error is not None]
    if done.commit is None and failed:
        raise failed[0]
    return done


# --- reads


def _reading(work: Callable[[Graph], Any]) -> Act:
    return lambda lab, key: {LABEL: told(lambda: work(lab.graph), reads=True)}


def _ports(graph: Graph) -> Any:
    return graph.query("query q() { match { $p: Port } return { $p.code as code, $p.mark as mark } }")


def _looked_up(lab: Lab, key: str | None) -> Answers:
    """Of a commit that stands, of one that lost its version, and of one that could still come."""
    commits = lab.graph.commits
    standing = lab.world.commits["keyed"]
    branch, _, rest = standing.partition("@")
    version = int(rest.partition("-")[0])
    lost, open_ = f"{branch}@{version}-{'0' * 16}", f"{branch}@{version + 1}-{'0' * 16}"
    return {
        "of one that stands": told(lambda: commits.outcome(standing), reads=True),
        "of one that lost": told(lambda: commits.outcome(lost), reads=True),
        "of one to come": told(lambda: commits.outcome(open_), reads=True),
    }


def _opened_cold(lab: Lab, key: str | None) -> Answers:
    return {LABEL: told(lambda: _ports(lab.graph), reads=True)}


def _exported(graph: Graph) -> Any:
    out = io.BytesIO()
    graph.export(out)
    return out.getvalue()


def _port(code: str, mark: str | None = None) -> dict[str, Any]:
    return {"type": "Port", "data": {"code": code, **({} if mark is None else {"mark": mark})}}


_LOADED = [_port(LABEL, LABEL), {"edge": "Ferry", "from": LABEL, "to": "A", "data": {"mark": LABEL}}]
_MERGED = [_port(LABEL, LABEL), _port("A", LABEL), {"type": "Note", "data": {"text": LABEL}}]
_OVERWRITTEN = [
    *[_port(code, LABEL) for code in "ABC"],
    {"edge": "Ferry", "from": "C", "to": "A", "data": {"mark": LABEL}},
]
_ferry_ab = put("Ferry", **{"from": "A", "to": "B", "mark": LABEL})
_loaded = also(put("Port", code=LABEL, mark=LABEL), put("Ferry", **{"from": LABEL, "to": "A", "mark": LABEL}))
_merged_rows = also(put("Port", code=LABEL, mark=LABEL), put("Port", code="A", mark=LABEL), put("Note", text=LABEL))
_overwritten = also(
    only("Port", *[{"code": code, "mark": LABEL} for code in "ABC"]),
    only("Ferry", {"from": "C", "to": "A", "mark": LABEL}),
)
_port_rivals = _on("main", related=appends_port, conflicting=same_port)
_update_rivals = _on("main", related=appends_port, conflicting=updates_port)
_delete_rivals = _on("main", related=ferry_at_c, conflicting=deletes_port)


def _write(number: int, name: str, act: Act, deed: Deed, rivals: Any, **more: Any) -> Operation:
    return Operation(number, name, act, deeds={LABEL: deed}, rivals=rivals, **more)


def _fork_rivals(name: str) -> dict[str, Callable[[Lab], None]]:
    return {
        "unrelated": appends_note(),
        "taken": makes(name),
        "comes and goes": comes_and_goes(name),
        "schema": applies(WITH_DOCK),
    }


OPERATIONS: tuple[Operation, ...] = (
    _write(10, "insert keyed", _mutation(PORT), put("Port", code=LABEL, mark=LABEL), _port_rivals, shares=True),
    _write(
        11,
        "insert unkeyed",
        _mutation(NOTE),
        put("Note", text=LABEL),
        _on("main", related=appends_note, conflicting=appends_note, drop=WITHOUT_NOTES),
        shares=True,
    ),
    _write(
        12,
        "insert edge",
        _mutation(FERRY),
        _ferry_ab,
        _on("main", related=appends_ferry, conflicting=deletes_port),
        shares=True,
    ),
    _write(
        13,
        "first write of a type",
        _mutation(LEG),
        put("Leg", **{"from": "A", "to": "B", "mark": LABEL}),
        _on(
            "main",
            related=lambda branch: _writes("a leg", LEG, lambda m: put("Leg", **{"from": "A", "to": "B", "mark": m})),
            conflicting=updates_port,
        ),
        shares=True,
    ),
    _write(14, "update", _mutation(UPDATE), marked("A", LABEL), _update_rivals, shares=True),
    _write(15, "delete with cascade", _mutation(DELETE), gone("C"), _delete_rivals, shares=True),
    _write(16, "load append", _load(_LOADED, "append"), _loaded, _port_rivals, shares=True),
    _write(17, "load merge", _load(_MERGED, "merge"), _merged_rows, _update_rivals, shares=True),
    _write(18, "load overwrite", _load(_OVERWRITTEN, "overwrite"), _overwritten, _update_rivals, shares=True),
    _write(
        19,
        "load into a fork",
        _load(_LOADED, "append", "fork", "main"),
        _loaded,
        _fork_rivals("fork"),
        branch="fork",
    ),
    _write(
        20,
        "load into a fork of a deleted name",
        _load(_LOADED, "append", "gone", "main"),
        _loaded,
        _fork_rivals("gone"),
        branch="gone",
    ),
    _write(
        21,
        "load with from, branch live",
        _load(_LOADED, "append", "side", "main"),
        _loaded,
        _on("side", related=appends_port, conflicting=same_port),
        branch="side",
        shares=True,
    ),
    _write(
        22,
        "schema apply",
        _single(lambda graph, key: graph.schema.apply(WITH_PIER, message=LABEL)),
        accepted(WITH_PIER),
        {"unrelated": appends_note(), "related": appends_port(), "conflicting": applies(WITH_DOCK)},
        keyed=False,
        again=True,
        twin=False,
    ),
    Operation(
        23,
        "branch create",
        _single(lambda graph, key: graph.branches.create("new", idempotency_key=key)),
        branch="new",
        bare={LABEL: ("new", "active")},
        rivals=_fork_rivals("new"),
        twin=False,
    ),
    Operation(
        24,
        "branch create of a deleted name",
        _single(lambda graph, key: graph.branches.create("gone", idempotency_key=key)),
        branch="gone",
        bare={LABEL: ("gone", "active")},
        rivals=_fork_rivals("gone"),
        twin=False,
    ),
    Operation(
        25,
        "branch delete",
        _single(lambda graph, key: graph.branches.delete("spare")),
        branch="spare",
        bare={LABEL: ("spare", "deleted")},
        keyed=False,
        again=True,
        rivals={
            "unrelated": appends_note(),
            "related": appends_port("spare"),
            "conflicting": branches_off("spare"),
            "gone": removes("spare"),
            "anew": makes_anew("spare"),
        },
        twin=False,
    ),
    Operation(
        26,
        "merge",
        _merged(delete=False),
        deeds={LABEL: nothing},
        rivals={"unrelated": appends_port("side"), "related": appends_note(), "anew": makes_anew("side")},
    ),
    Operation(
        27,
        "merge and delete",
        _merged(delete=True),
        deeds={LABEL: nothing},
        bare={DELETION: ("side", "deleted")},
        rivals={"unrelated": appends_port("side"), "related": appends_note(), "anew": makes_anew("side")},
        twin=False,
    ),
    Operation(
        28,
        "grouped inserts",
        _grouped,
        deeds={
            LABEL: put("Port", code=LABEL, mark=LABEL),
            "subject-1": put("Port", code="subject-1", mark="subject-1"),
            "subject-2": put("Note", text="subject-2"),
            "subject-3": put("Ferry", **{"from": "A", "to": "B", "mark": "subject-3"}),
        },
        rivals=_port_rivals,
        twin=False,
    ),
    _write(
        29,
        "insert on a branch",
        _mutation(PORT, "side"),
        put("Port", code=LABEL, mark=LABEL),
        _on("side", related=appends_port, conflicting=same_port),
        branch="side",
        shares=True,
    ),
    _write(
        30,
        "insert that moves the log",
        _mutation(PORT),
        put("Port", code=LABEL, mark=LABEL),
        {"related": appends_port()},
        world="long",
        shares=True,
    ),
    Operation(
        31,
        "repeat of an old key",
        lambda lab, key: {
            LABEL: told(lambda: lab.handle("maker").mutate(NOTE, m="keyed", message="keyed", idempotency_key=OLD_KEY))
        },
        deeds={},
        world="longer",
        rivals={"related": appends_note()},
        twin=False,
        keyed=False,
    ),
    _write(
        32,
        "insert keyed, without a key of the client",
        _mutation(PORT),
        put("Port", code=LABEL, mark=LABEL),
        _port_rivals,
        shares=True,
        keyed=False,
    ),
    _write(
        33,
        "insert unkeyed, without a key of the client",
        _mutation(NOTE),
        put("Note", text=LABEL),
        _on("main", related=appends_note, conflicting=appends_note, drop=WITHOUT_NOTES),
        shares=True,
        keyed=False,
    ),
    Operation(
        34,
        "init",
        _made,
        bare={LABEL: ("main", "active")},
        world="empty",
        keyed=False,
        again=True,
        cold=True,
        twin=False,
        rivals={"taken": made_by_another},
    ),
    _write(
        35,
        "optimize",
        _single(lambda graph, key: optimized(graph, LABEL)),
        nothing,
        _update_rivals,
        shares=True,
        keyed=False,
        again=True,
        twin=False,
    ),
    Operation(40, "query", _reading(_ports), reads=True, rivals=_update_rivals, keyed=False, twin=False),
    Operation(
        41,
        "query of a commit",
        lambda lab, key: {
            LABEL: told(
                lambda: lab.graph.query(
                    "query q() { match { $p: Port } return { $p.code as code, $p.mark as mark } }",
                    snapshot=lab.world.commits["ports"],
                ),
                reads=True,
            )
        },
        reads=True,
        keyed=False,
        twin=False,
    ),
    Operation(42, "outcome look-up", _looked_up, reads=True, rivals=_port_rivals, keyed=False, twin=False),
    Operation(
        43,
        "branch list",
        _reading(lambda graph: tuple(each.name for each in graph.branches.list())),
        reads=True,
        rivals={"taken": makes("new"), "gone": removes("spare")},
        keyed=False,
        twin=False,
    ),
    Operation(
        44,
        "commit list",
        _reading(lambda graph: tuple(each.graph_commit_id for each in graph.commits.list())),
        reads=True,
        world="longer",
        rivals={"related": appends_note()},
        keyed=False,
        twin=False,
    ),
    Operation(
        45, "open and query", _opened_cold, reads=True, cold=True, rivals=_update_rivals, keyed=False, twin=False
    ),
    Operation(46, "export", _reading(_exported), reads=True, rivals=_update_rivals, keyed=False, twin=False),
)
BY_NUMBER = {operation.number: operation for operation in OPERATIONS}
