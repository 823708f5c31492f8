"""What a handle reads, judged by replay: always one whole state that the branch had, and never older than it must be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from faults.lab import Answer, Definite, Done, Doubt, Lab, Stopped
from faults.operations import LABEL, Operation
from faults.oracle import WITHOUT_MARKS, WITHOUT_NOTES, WITHOUT_PORTS, Model, Picture, picture
from faults.truth import Held, States, require
from omnigraph.engine.graph import Graph
from omnigraph.errors import BranchNotFound, InvalidQuery
from omnigraph.manifest.keys import MANIFESTS, branch_folder, parse_version_key
from omnigraph.store.base import Created

TYPES = ("Port", "Note", "Ferry")
_NARROWER = (WITHOUT_PORTS, WITHOUT_NOTES, WITHOUT_MARKS)


def states_of(lab: Lab, found: Held, branch: str) -> list[Model]:
    """The state of each version of a branch, oldest first."""
    return States(found, lab.deeds, lab.world.states).of_chain(found.chains.get(branch, []))


def shown_types(model: Model) -> Picture:
    """What `rows_read` reads of a state."""
    return {name: rows for name, rows in model.picture().items() if name in TYPES}


def rows_read(graph: Graph, branch: str = "main") -> Mapping[str, tuple[str, ...]]:
    """Three types by query, in the form of a picture."""
    texts = {
        "Port": "query q() { match { $p: Port } return { $p.code as code, $p.mark as mark } }",
        "Note": "query q() { match { $n: Note } return { $n.text as text } }",
        "Ferry": "query q() { match { $a $f:ferry $b } return { $a.code as from, $b.code as to, $f.mark as mark } }",
    }
    return picture({name: [dict(row) for row in graph.query(text, branch=branch)] for name, text in texts.items()})


def check_handle(lab: Lab, operation: Operation, answers: Mapping[str, Answer], *, exact: bool) -> None:
    """Read three types of the operation's branch through the subject's handle.

    A process that owns the graph may believe its memory, but not below what it was told, nor while it is in doubt. With
    `exact` it has just written, so that it must see the head.
    """
    found = lab.held()
    head = found.head(operation.branch)
    if head is None:
        return
    published = _went_on_from(lab, operation.branch)
    must_be_head = exact or not lab.owner or operation.branch in _in_doubt(lab, operation, answers)
    try:
        seen = rows_read(lab.graph, operation.branch)
    except BranchNotFound:
        gone = head.manifest.state != "active" or (not must_be_head and lab.rivals > 0)
        require(gone, f"'{operation.branch}' is live and not found")
        return
    except InvalidQuery:
        narrower = any(model.schema in _NARROWER for model in states_of(lab, found, operation.branch))
        require(narrower, "a query of types that are there is refused")
        return
    oldest = head.manifest.version - 1 if must_be_head else max(published - 1, _known(lab, found, operation, answers))
    after = lab.held()
    allowed = [shown_types(model) for model in states_of(lab, after, operation.branch)[oldest:]]
    kind = "the head" if must_be_head else f"version {oldest + 1} or a later one"
    landed = after.head(operation.branch) != head  # meanwhile: the types were read one after another
    mixed = landed and all(rows in [each.get(name, ()) for each in allowed] for name, rows in seen.items())
    require(seen in allowed or mixed, f"'{operation.branch}' is read as {seen}, which is not {kind}: {allowed}")


def check_branches(lab: Lab, operation: Operation, answers: Mapping[str, Answer]) -> None:
    """The branches that the handle lists are those that live. Of a process that owns the graph, while others made or
    deleted some behind its back, so much is asked of those that it is in doubt about.
    """
    before = lab.held()
    if "main" not in before.chains:
        return
    listed = {each.name for each in lab.graph.branches.list()}
    live = [{version.manifest.branch for version in found.live()} for found in (before, lab.held())]
    if lab.owner and lab.rivals:
        doubtful = _in_doubt(lab, operation, answers)
        listed, live = listed & doubtful, [each & doubtful for each in live]
    require(listed in live, f"branches are listed as {sorted(listed)}, and those that live are {sorted(live[-1])}")


def _in_doubt(lab: Lab, operation: Operation, answers: Mapping[str, Answer]) -> set[str]:
    """The branches on which the subject may have published without knowing it."""
    found: set[str] = set()
    for label, answer in answers.items():
        if isinstance(answer, Doubt):
            found.add(operation.publishes_on(label))
        elif isinstance(answer, Stopped):  # and with it what would have come after it
            found |= {operation.publishes_on(label), *(branch for branch, _ in operation.bare.values())}
    stopped = not any(isinstance(answer, Doubt) for answer in answers.values())
    return {branch for branch in found if not (stopped and _went_on_from(lab, branch))}


def _went_on_from(lab: Lab, branch: str) -> int:
    """The version that the subject has last published on a branch and knows of: it was answered so, and then asked for
    something else. 0 if there is none, or if it was stopped before it went on.
    """
    sent = lab.store.requests[lab.first : lab.answered_at]
    folder = f"{MANIFESTS}/{branch_folder(branch)}/"
    created = [each for each in sent if each.verb == "create" and each.key.startswith(folder)]
    if not created or not isinstance(created[-1].outcome, Created):
        return 0
    went_on = any(each.ordinal > created[-1].ordinal and not each.key.startswith(folder) for each in sent)
    parsed = parse_version_key(created[-1].key)
    return parsed[1] if went_on and parsed is not None else 0


def _known(lab: Lab, found: Held, operation: Operation, answers: Mapping[str, Answer]) -> int:
    """The place of the oldest version that an owner may still take for the head."""
    began = [v for b, v in lab.world_heads() if b == operation.branch]
    oldest = max(began, default=1)
    for answer in (*answers.values(), *lab.own.values()):
        commit = found.named(answer.commit) if isinstance(answer, Done) else None
        if commit is not None and commit.id.branch == operation.branch:
            oldest = max(oldest, commit.id.version)
    return oldest - 1


def check_value(lab: Lab, operation: Operation, answers: Mapping[str, Answer]) -> None:
    """What a read answered is true of one moment during it."""
    found = lab.held()
    values = {label: answer.value for label, answer in answers.items() if isinstance(answer, Done)}
    began = max((v for b, v in lab.world_heads() if b == "main"), default=1)
    if operation.name == "outcome look-up":
        _check_outcomes(lab, found, values)
        return
    value = values.get(LABEL)
    if value is None:
        require(all(isinstance(answer, Definite | Stopped) for answer in answers.values()), "no answer at all")
        return
    states = states_of(lab, found, "main")
    match operation.name:
        case "query" | "open and query":
            allowed = [model.picture().get("Port", ()) for model in states[began - 1 :]]
            require(_ports(value) in allowed, f"ports are read as {_ports(value)}")
        case "query of a commit":
            require(_ports(value) == states[1].picture()["Port"], f"ports are read as {_ports(value)}")
        case "export":
            allowed = [model.picture() for model in states[began - 1 :]]
            require(_exported(value) in allowed, f"exported are {_exported(value)}")
        case "branch list":
            always = {"main", "side"}
            require(always <= set(value) <= {*always, "spare", "new"}, f"branches are {value}")
            require("spare" in value or lab.rivals > 0, f"branches are {value}")
        case "commit list":
            log = [str(commit.id) for v in reversed(found.chains["main"]) for commit in v.manifest.commits]
            allowed_logs = [tuple(log[skip:]) for skip in range(lab.rivals + 1)]
            require(tuple(value) in allowed_logs, f"{len(value)} commits are listed")
        case other:
            raise AssertionError(f"nobody judges what '{other}' answers")


def _check_outcomes(lab: Lab, found: Held, values: Mapping[str, Any]) -> None:
    said = {label: (value.outcome, value.reason) for label, value in values.items()}
    require(len(said) == 3, f"a look-up fails: {said}")
    unreadable = ("undetermined", "unreadable")
    stands, lost, to_come = (said[f"of one {each}"] for each in ("that stands", "that lost", "to come"))
    require(stands in (("published", None), unreadable), f"a commit that stands is {stands}")
    require(lost in (("superseded", None), unreadable), f"a commit whose version is taken is {lost}")
    taken = found.chains["main"][-1].manifest.version > max(v for b, v in lab.world_heads() if b == "main")
    allowed = [("undetermined", "version_absent"), unreadable, *([("superseded", None)] if taken else [])]
    require(to_come in allowed, f"a commit that could still land is {to_come}")


def _ports(value: Any) -> tuple[str, ...]:
    return picture({"Port": [dict(row) for row in value]}).get("Port", ())


def _exported(data: bytes) -> Picture:
    rows: dict[str, list[Any]] = {}
    for line in data.splitlines():
        record = json.loads(line)
        ends = {name: record[name] for name in ("from", "to") if name in record}
        rows.setdefault(record.get("type") or record["edge"], []).append({**record["data"], **ends})
    return picture(rows)
