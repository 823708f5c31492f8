"""Reads over HTTP: formats, streams, which state is read, and addresses as they may be spelled."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pyarrow.ipc as ipc
import pytest

from omnigraph.engine.receipts import as_datetime
from omnigraph.server import answers
from omnigraph.server.limits import ServerLimits
from server.asgi import Reply, done, refused, sound
from server.conftest import Serve, Served

QUERY = "/graphs/atlas/query"
ALL = {"query": "query ports() { match { $p: Port } return { $p.code as code, $p.depth as depth } order { code } }"}
ARROW, NDJSON, CSV = "application/vnd.apache.arrow.stream", "application/x-ndjson", "text/csv"


def records(count: int) -> str:
    return "".join(f'{{"type": "Port", "data": {{"code": "{n:06}", "depth": {n}}}}}\n' for n in range(count))


@pytest.fixture
def ports(served: Served) -> Served:
    done(served.load("/graphs/atlas/load/ndjson?mode=append", records(3)))
    return served


def test_a_result_is_json_unless_another_format_is_asked_for(ports: Served) -> None:
    rows = [{"code": f"{n:06}", "depth": n} for n in range(3)]
    for accept in (
        "application/json",
        "*/*",
        "application/*",
        "text/html, */*;q=0.1",
        f"{CSV};q=0.5, application/json",
    ):
        reply = ports.post(QUERY, ALL, accept=accept)
        assert reply.headers["content-type"] == "application/json", accept
        assert done(reply)["rows"] == rows
    assert done(ports.post(QUERY, ALL))["rows"] == rows


@pytest.mark.parametrize(
    "accept",
    ["{}", "{}, */*;q=0.5", "application/json;q=0.2, {}", "application/json;q=0, */*;q=0.1, {};q=0.9", "{};q=1.0"],
)
def test_the_streamed_formats_name_the_commit_and_the_query(ports: Served, accept: str) -> None:
    head = ports.head()
    for form in (ARROW, NDJSON, CSV):
        reply = sound(ports.post(QUERY, ALL, accept=accept.format(form)))
        assert reply.headers["content-type"].split(";")[0] == form
        assert (reply.headers["omnigraph-graph-commit"], reply.headers["omnigraph-query-name"]) == (head, "ports")
        assert reply.complete
    assert "content-length" not in reply.headers


def test_each_format_holds_the_same_rows(ports: Served) -> None:
    arrow = ipc.open_stream(ports.post(QUERY, ALL, accept=ARROW).body)
    assert arrow.schema.metadata[b"omnigraph.graph_commit_id"] == ports.head().encode()
    assert arrow.read_all().column("depth").to_pylist() == [0, 1, 2]
    lines = ports.post(QUERY, ALL, accept=NDJSON).body.splitlines()
    assert [json.loads(line)["depth"] for line in lines] == [0, 1, 2]
    assert ports.post(QUERY, ALL, accept=CSV).body.startswith(b"code,depth\r\n000000,0\r\n")


@pytest.mark.parametrize(
    "accept", ["text/html", "application/json;q=0", "*/*;q=0", "application/json;q=x", "image/*, a"]
)
def test_a_format_that_is_not_offered_is_refused_before_the_body_is_read(served: Served, accept: str) -> None:
    refused(served.send("POST", QUERY, headers=[("accept", accept)], body=b"{"), 406, "not_acceptable")


def test_an_empty_stream_is_complete(served: Served) -> None:
    for form in (ARROW, NDJSON, CSV):
        assert sound(served.post(QUERY, ALL, accept=form)).complete
    assert served.post(QUERY, ALL, accept=NDJSON).body == b""


def test_a_stream_comes_in_pieces_of_bounded_rows(served: Served) -> None:
    done(served.load("/graphs/atlas/load/ndjson?mode=append", records(20_000)))
    for form, separator in ((NDJSON, b"\n"), (CSV, b"\r\n")):
        pieces = served.post(QUERY, ALL, accept=form).pieces
        assert len(pieces) >= 3
        assert max(piece.count(separator) for piece in pieces) <= 8_192
    assert len(served.post(QUERY, ALL, accept=ARROW).pieces) >= 3


def test_an_error_before_the_first_byte_is_json_whatever_was_accepted(served: Served) -> None:
    broken = {"query": "query q() { match { $p: Prt } return { $p } }"}
    for form in (ARROW, NDJSON, CSV):
        refused(served.post(QUERY, broken, accept=form), 400, "invalid_query")


def test_an_error_after_the_first_byte_leaves_the_body_without_its_end(
    ports: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*args: Any) -> Any:
        yield b"first"
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(answers, "ndjson", breaks)
    reply = ports.post(QUERY, ALL, accept=NDJSON)
    assert (reply.status, reply.body, reply.complete) == (200, b"first", False)


def test_a_buffered_answer_has_a_limit_and_a_streamed_one_has_not(serve: Serve) -> None:
    served = serve(limits=ServerLimits(json_result_bytes=400))
    done(served.load("/graphs/atlas/load/ndjson?mode=append", records(100)))
    error = refused(served.post(QUERY, ALL), 413, "result_too_large")
    assert error["resource_limit"]["limit"] == 400
    assert len(served.post(QUERY, ALL, accept=NDJSON).body.splitlines()) == 100


def test_integers_are_text_if_a_setting_or_a_preference_says_so(ports: Served) -> None:
    by_setting = done(ports.post(QUERY, {**ALL, "settings": {"int64_json": "string"}}))
    by_header = done(ports.post(QUERY, ALL, prefer="return=minimal, omnigraph-int64=string"))
    assert by_setting["rows"][2] == by_header["rows"][2] == {"code": "000002", "depth": "2"}


def test_a_profile_comes_with_json_and_arrow_and_is_refused_where_it_has_no_place(ports: Served) -> None:
    answer = done(ports.post(QUERY, ALL, prefer="wait=5, omnigraph-profile"))
    steps = [
        (row["node"], json.loads(row["detail"])["rows_out"]) for row in answer["profile"] if row["tree"] == "profile"
    ]
    assert steps == [("Project", 3), ("Sort", 3), ("Scan", 3)]
    assert [row["depth"] for row in answer["profile"] if row["tree"] == "profile"] == [0, 1, 2]
    assert all(set(row) == {"tree", "node", "detail"} for row in answer["profile"] if row["tree"] == "plan")
    metadata = ipc.open_stream(ports.post(QUERY, ALL, accept=ARROW, prefer="omnigraph-profile").body).schema.metadata
    nodes = [row["node"] for row in json.loads(metadata[b"omnigraph.profile"]) if row["tree"] == "profile"]
    assert nodes == ["Project", "Sort", "Scan"]
    assert "profile" not in done(ports.post(QUERY, ALL))
    for form in (NDJSON, CSV):
        refused(ports.post(QUERY, ALL, accept=form, prefer="omnigraph-profile"), 400, "bad_request")
    explained = {"query": f"explain {ALL['query']}"}
    assert "profile" not in done(ports.post(QUERY, explained, prefer="omnigraph-profile"))


def test_headers_of_our_own_are_refused_where_they_have_no_place_and_others_are_ignored(served: Served) -> None:
    done(served.post(QUERY, ALL, foo="bar", prefer="return=minimal, wait=5", if_match='"x"', range="bytes=0-1"))
    for unknown in ("omnigraph-int64=strings", "wait=5, omnigraph-speed", "omnigraph-int64"):
        refused(served.post(QUERY, ALL, prefer=unknown), 400, "bad_request")
    for path in ("/graphs/atlas/branches", "/healthz", "/graphs/atlas/commits"):
        for given in ({"prefer": "omnigraph-int64=string"}, {"omnigraph_if_commit": "main@1-0011223344556677"}):
            refused(served.get(path, **given), 400, "bad_request")
        done(served.get(path, foo="bar", omnigraph_http_api="1"))
    insert = {"query": 'query add() { insert Port { code: "A" } }'}
    refused(served.post("/graphs/atlas/mutate", insert, omnigraph_if_commit="x"), 400, "bad_request", effects="none")
    assert served.codes() == []


@pytest.mark.parametrize("settings", [{"nothing": 1}, {"query_timeout_ms": 60_001}, {"max_result_rows": 2_000_000}])
def test_a_request_may_lower_limits_and_not_raise_them(served: Served, settings: dict[str, int]) -> None:
    refused(served.post(QUERY, {**ALL, "settings": settings}), 400, "invalid_setting")
    done(served.post(QUERY, {**ALL, "settings": {"query_timeout_ms": 59_000}}))


def test_the_environment_decides_how_far_limits_go_and_the_refusal_says_so_in_every_format(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_MAX_RESULT_ROWS", "3")
    few = serve()
    done(few.load("/graphs/atlas/load/ndjson?mode=append", records(5)))
    for form in answers.RESULT_FORMATS:
        error = refused(few.post(QUERY, ALL, accept=form), 413, "resource_limit")
        assert error["resource_limit"] == {"resource": "max_result_rows", "limit": 3, "actual": 5}
        assert "OMNIGRAPH_MAX_RESULT_ROWS" in error["error"]
    higher = refused(few.post(QUERY, {**ALL, "settings": {"max_result_rows": 4}}), 400, "invalid_setting")
    assert "OMNIGRAPH_MAX_RESULT_ROWS" in higher["error"]
    in_text = {"query": f"set max_result_rows = 4; {ALL['query']}"}
    refused(few.post(QUERY, {**ALL, **in_text}), 400, "invalid_setting")
    lower = refused(few.post(QUERY, {**ALL, "settings": {"max_result_rows": 2}}), 413, "resource_limit")
    assert "raise max_result_rows" in lower["error"]
    monkeypatch.setenv("OMNIGRAPH_MAX_RESULT_ROWS", "2000000")
    many = serve()
    assert done(many.post(QUERY, {**ALL, "settings": {"max_result_rows": 2_000_000}}))["row_count"] == 5


def test_how_integers_are_spelled_may_stand_in_the_text(served: Served) -> None:
    count = "query n() { match { $p: Port } return { count($p) as n } }"
    as_text = done(served.post(QUERY, {"query": f"set int64_json = string; {count}"}))["rows"]
    as_number = done(served.post(QUERY, {"query": count}))["rows"]
    assert [str(row["n"]) for row in as_number] == [row["n"] for row in as_text]
    shown = done(served.post(QUERY, {"query": "set traversal = matrix; show traversal"}))
    assert shown["rows"] == [
        {"name": "traversal", "value": "matrix", "default": "auto", "source": "file", "scope": "request"}
    ]


def test_the_environment_decides_how_integers_are_spelled(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_INT64_JSON", "string")
    served = serve()
    done(served.load("/graphs/atlas/load/ndjson?mode=append", records(3)))
    assert done(served.post(QUERY, ALL))["rows"][2]["depth"] == "2"
    assert done(served.post(QUERY, {**ALL, "settings": {"int64_json": "number"}}))["rows"][2]["depth"] == 2


def test_a_mutation_sent_to_query_and_a_read_sent_to_mutate_are_wrong_verbs(served: Served) -> None:
    insert = {"query": 'query add() { insert Port { code: "A" } }'}
    refused(served.post(QUERY, insert), 400, "wrong_verb")
    refused(served.post("/graphs/atlas/mutate", ALL), 400, "wrong_verb", effects="none")
    assert served.codes() == []


def test_which_state_is_read(ports: Served) -> None:
    before = ports.head()
    done(ports.insert("Z"))
    assert len(ports.codes()) == 4
    assert len(ports.codes(snapshot=before)) == 3
    assert len(ports.codes(branch="main")) == 4
    refused(ports.post(QUERY, {**ALL, "branch": "main", "snapshot": before}), 400, "bad_request")
    refused(ports.post(QUERY, {**ALL, "branch": "nothing"}), 404, "branch_not_found")
    refused(ports.post(QUERY, {**ALL, "snapshot": "main@9-0011223344556677"}), 404, "commit_not_found")
    refused(ports.post(QUERY, {**ALL, "snapshot": "nightly"}), 404, "snapshot_not_found")
    refused(ports.get("/graphs/atlas/schema?branch=nothing"), 404, "branch_not_found")
    assert done(ports.get(f"/graphs/atlas/snapshot?snapshot={before}"))["graph_commit_id"] == before
    moment = done(ports.get(f"/graphs/atlas/commits/{before}"))["created_at"]
    assert len(ports.codes(branch="main", as_of=moment)) == 3
    refused(ports.post(QUERY, {**ALL, "as_of": "yesterday"}), 400, "bad_request")
    refused(ports.post(QUERY, {**ALL, "as_of": 10**30}), 400, "bad_request")
    for spelled in (moment, as_datetime(moment).isoformat()):
        asked = f"?branch=main&as_of={quote(str(spelled))}"
        assert done(ports.get(f"/graphs/atlas/snapshot{asked}"))["graph_commit_id"] == before
        assert done(ports.get(f"/graphs/atlas/schema{asked}"))["graph_commit_id"] == before
        cut = ports.post("/graphs/atlas/export", {"as_of": spelled})
        assert (cut.headers["omnigraph-graph-commit"], len(exported(cut))) == (before, 3)
    for route in ("snapshot", "schema"):
        for wrong in ("as_of=yesterday", "as_of=1.5", f"as_of=1&snapshot={before}", "as_of=" + "9" * 5_000, "as_of="):
            refused(ports.get(f"/graphs/atlas/{route}?{wrong}"), 400, "bad_request")
    refused(ports.post("/graphs/atlas/export", {"as_of": True}), 400, "bad_request")


# --- names in addresses and headers


@pytest.mark.parametrize("name", ["review/q3", "größe", "日本/港", "a,b*", "50%", "a b", "merge", "x/outcome", "A.b"])
def test_branch_names_and_commit_ids_travel_encoded_and_bare(served: Served, name: str) -> None:
    done(served.post("/graphs/atlas/branches", {"name": name}))
    insert = {"query": 'query add() { insert Port { code: "A" } }', "branch": name}
    commit = done(served.post("/graphs/atlas/mutate", insert))["commit"]["graph_commit_id"]
    assert commit.startswith(f"{name}@")
    for spelled in (quote(commit, safe=""), quote(commit, safe="/@")):
        assert done(served.get(f"/graphs/atlas/commits/{spelled}"))["graph_commit_id"] == commit
        outcome = done(served.get(f"/graphs/atlas/commits/{spelled}/outcome"))
        assert (outcome["outcome"], outcome["branch"]) == ("published", name)
    reply = served.post(QUERY, {**ALL, "branch": name})
    in_header = reply.headers["omnigraph-graph-commit"]
    assert in_header.isascii()
    assert " " not in in_header
    update = {**insert, "query": 'query u() { update Port set { name: "x" } where code = "A" }'}
    conditional = served.post("/graphs/atlas/mutate/if-graph-commit", update, omnigraph_if_graph_commit=in_header)
    done(conditional)
    assert done(served.delete(f"/graphs/atlas/branches/{quote(name, safe='')}"))["name"] == name
    assert done(served.get("/graphs/atlas/branches"))["branches"] == ["main"]


def test_an_id_that_does_not_parse_is_bad_and_one_that_nobody_made_is_absent(served: Served) -> None:
    beyond = f"main@{2**63 - 1}-0011223344556677"
    for target in ("main", "main@1", "main@1-abc", "main@x-0011223344556677", "@1-0011223344556677", beyond):
        refused(served.get(f"/graphs/atlas/commits/{target}"), 400, "bad_request")
        refused(served.get(f"/graphs/atlas/commits/{target}/outcome"), 400, "bad_request")
    unknown = "main@9-0011223344556677"
    refused(served.get(f"/graphs/atlas/commits/{unknown}"), 404, "commit_not_found")
    outcome = done(served.get(f"/graphs/atlas/commits/{unknown}/outcome"))
    assert (outcome["outcome"], outcome["reason"]) == ("undetermined", "version_absent")


# --- commits, page by page


def listed(served: Served, **given: Any) -> tuple[list[str], str | None]:
    query = "&".join(f"{name}={quote(str(value))}" for name, value in given.items())
    page = done(served.get(f"/graphs/atlas/commits?{query}"))
    return [commit["graph_commit_id"] for commit in page["commits"]], page["next_page_token"]


def test_pages_together_are_the_list_and_new_commits_shift_nothing(served: Served) -> None:
    for code in "ABCD":
        done(served.insert(code))
    whole, after = listed(served)
    assert (len(whole), after) == (5, None)
    assert listed(served, limit=5) == (whole, None)
    first, token = listed(served, limit=2)
    assert token is not None
    done(served.insert("E"))
    second, token = listed(served, limit=2, page_token=token, branch="main")
    third, end = listed(served, limit=2, page_token=token)
    assert (first + second + third, end) == (whole, None)


def test_a_page_keeps_the_times_of_its_list(served: Served) -> None:
    for code in "ABC":
        done(served.insert(code))
    moments = [c["created_at"] for c in done(served.get("/graphs/atlas/commits"))["commits"]]
    bounded, token = listed(served, since=moments[2], until=moments[1], limit=1)
    assert token is not None
    rest, end = listed(served, page_token=token, limit=1)
    assert (len(bounded + rest), end) == (2, None)
    reply = served.get(f"/graphs/atlas/commits?page_token={token}&since=1")
    refused(reply, 400, "change_cursor_rejected")


@pytest.mark.parametrize("token", ["x", "e30", "bnVsbA", "W10", "AAAA", "x" * 4_096, "%F0%9F%98%80"])
def test_a_token_of_another_kind_is_refused(served: Served, token: str) -> None:
    refused(served.get(f"/graphs/atlas/commits?page_token={token}"), 400, "change_cursor_rejected")


def test_a_token_of_another_branch_or_with_forged_parts_is_refused(served: Served) -> None:
    import base64

    done(served.insert("A"))
    done(served.post("/graphs/atlas/branches", {"name": "b"}))
    _, token = listed(served, limit=1)
    assert token is not None
    refused(served.get(f"/graphs/atlas/commits?page_token={token}&branch=b"), 400, "change_cursor_rejected")
    said = json.loads(base64.urlsafe_b64decode(token + "=="))
    for forged in ({"graph": "x"}, {"head": "main@7-0011223344556677"}, {"place": -1}, {"place": True}, {"since": "a"}):
        text = base64.urlsafe_b64encode(json.dumps({**said, **forged}).encode()).decode().rstrip("=")
        refused(served.get(f"/graphs/atlas/commits?page_token={text}"), 400, "change_cursor_rejected")


# --- export


def exported(reply: Reply) -> list[Any]:
    assert sound(reply).complete
    assert reply.headers["content-type"] == NDJSON
    return [json.loads(line) for line in reply.body.splitlines()]


def test_an_export_loads_again_and_names_its_cut(ports: Served) -> None:
    edge = '{"edge": "Ferry", "from": "000000", "to": "000001", "data": {}}'
    done(ports.load("/graphs/atlas/load/ndjson?mode=append", edge))
    reply = ports.post("/graphs/atlas/export", {})
    kinds = ["type" if "type" in record else "edge" for record in exported(reply)]
    assert kinds == ["type"] * 3 + ["edge"]
    assert reply.headers["omnigraph-graph-commit"] == ports.head()
    done(ports.post("/graphs/atlas/branches", {"name": "copy"}))
    again = done(ports.load("/graphs/atlas/load/ndjson?mode=overwrite&branch=copy", reply.body))
    assert again["total_entities"] == 4
    assert len(exported(ports.post("/graphs/atlas/export", {"types": ["Ferry"]}))) == 1
    refused(ports.post("/graphs/atlas/export", {"types": ["Nothing"]}), 400, "bad_request")
    refused(ports.post("/graphs/atlas/export", {"branch": "nothing"}), 404, "branch_not_found")
