"""The description is true: the routes that there are, no other, and answers as it says they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel

from omnigraph.server import shapes
from omnigraph.server.app import routed
from omnigraph.server.rules import rules
from server.asgi import Reply, done, refused, sound
from server.conftest import Serve, Served

DESCRIPTION: dict[str, Any] = routed().state.description


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DESCRIPTION["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_it_names_each_route_and_method_once() -> None:
    routes = [r for r in routed().router.routes if isinstance(r, APIRoute)]
    served = sorted((method, route.path_format) for route in routes for method in route.methods or ())
    assert served == sorted((method, path) for method, path, _ in operations())
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids))
    assert DESCRIPTION["openapi"].startswith("3.1")


def test_every_reference_leads_somewhere() -> None:
    schemas = DESCRIPTION["components"]["schemas"]
    found = set(references(DESCRIPTION))
    assert {f"#/components/schemas/{name}" for name in schemas} == found
    assert "security" not in DESCRIPTION


def test_it_tells_the_parameters_bodies_and_headers_that_routes_check() -> None:
    routes = {(m, r.path_format): r for r in routed().router.routes if isinstance(r, APIRoute) for m in r.methods or ()}
    for method, path, operation in operations():
        demanded = rules(routes[method, path])
        parameters = {(each["in"], each["name"]): each for each in operation["parameters"]}
        queries = {field.alias or name for name, field in demanded.parameters.model_fields.items()}
        assert {name for place, name in parameters if place == "query"} == queries
        assert ("header", "Idempotency-Key") in parameters if demanded.key else True
        assert ("header", "Omnigraph-If-Graph-Commit") in parameters if demanded.condition else True
        assert ("requestBody" in operation) == (demanded.body is not None)
        assert operation["responses"]["default"]["content"]["application/json"]["schema"] == {
            "$ref": "#/components/schemas/ErrorBody"
        }
        assert "422" not in operation["responses"]


def test_it_is_cached_for_a_minute_by_its_tag(served: Served) -> None:
    reply = sound(served.get("/openapi.json"))
    assert reply.json() == DESCRIPTION
    assert reply.headers["cache-control"] == "max-age=60"
    tag = reply.headers["etag"]
    for given in (tag, f'"x", W/{tag}', "*"):
        again = sound(served.get("/openapi.json", if_none_match=given))
        assert (again.status, again.body) == (304, b"")
    assert served.get("/openapi.json", if_none_match='"x"').status == 200


# --- answers


def shape(method: str, template: str, status: int = 200) -> type[BaseModel]:
    operation = DESCRIPTION["paths"][template][method.lower()]
    reference = operation["responses"][str(status)]["content"]["application/json"]["schema"]["$ref"]
    return getattr(shapes, reference.rsplit("/", 1)[1])


def conforms(reply: Reply, method: str, template: str) -> Any:
    answer = done(reply)
    shape(method, template).model_validate(answer)
    return answer


ATLAS = "/graphs/{g}"


def test_answers_are_as_described(serve: Serve) -> None:
    served = serve()
    conforms(served.get("/healthz"), "GET", "/healthz")
    conforms(served.get("/readyz"), "GET", "/readyz")
    conforms(served.get("/graphs"), "GET", "/graphs")
    conforms(served.get("/graphs/atlas"), "GET", ATLAS)
    mutated = conforms(served.insert("A", idempotency_key="k"), "POST", f"{ATLAS}/mutate")
    assert mutated["commit"]["counts"] == {"node:Port": {"inserted": 1, "updated": 0, "deleted": 0}}
    again = served.insert("A", idempotency_key="k")
    replayed = conforms(again, "POST", f"{ATLAS}/mutate")
    assert replayed == {**mutated, "idempotent_replay": True}
    assert again.headers["idempotency-replayed"] == "true"
    head = mutated["commit"]["graph_commit_id"]
    update = {"query": 'query u() { update Port set { name: "x" } where code = "A" }'}
    conditional = "/graphs/atlas/mutate/if-graph-commit"
    conforms(
        served.post(conditional, update, omnigraph_if_graph_commit=head), "POST", f"{ATLAS}/mutate/if-graph-commit"
    )
    nothing = {"query": 'query u() { update Port set { name: "x" } where code = "Z" }'}
    assert conforms(served.post("/graphs/atlas/mutate", nothing), "POST", f"{ATLAS}/mutate")["commit"] is None

    lines = '{"type": "Port", "data": {"code": "B"}}\n{"edge": "Ferry", "from": "A", "to": "B", "data": {}}\n'
    loaded = conforms(served.post("/graphs/atlas/load", {"data": lines, "mode": "merge"}), "POST", f"{ATLAS}/load")
    assert loaded["total_entities"] == 2
    ndjson = "/graphs/atlas/load/ndjson?mode=append&branch=new&from=main&message=first"
    forked = conforms(served.load(ndjson, lines.replace('"B"', '"C"')), "POST", f"{ATLAS}/load/ndjson")
    assert (forked["branch_created"], forked["commit"]["message"]) == (True, "first")

    conforms(served.get("/graphs/atlas/branches"), "GET", f"{ATLAS}/branches")
    created = {"name": "b", "from": "main"}
    conforms(served.post("/graphs/atlas/branches", created), "POST", f"{ATLAS}/branches")
    conforms(served.delete("/graphs/atlas/branches/b"), "DELETE", f"{ATLAS}/branches/{{branch}}")
    merge, template = "/graphs/atlas/branches/merge", f"{ATLAS}/branches/merge"
    conforms(served.post(merge, {"source": "new", "dry_run": True}), "POST", template)
    merged = conforms(served.post(merge, {"source": "new", "delete_branch": True}), "POST", template)
    assert (merged["outcome"], merged["branch_deleted"]) == ("fast_forward", True)

    query = {"query": "query q($c: String) { match { $p: Port { code: $c } } return { $p } }", "params": {"c": "A"}}
    found = conforms(served.post("/graphs/atlas/query", query), "POST", f"{ATLAS}/query")
    assert found["row_count"] == 1
    for name in ("snapshot", "schema"):
        reply = served.get(f"/graphs/atlas/{name}")
        answer = conforms(reply, "GET", f"{ATLAS}/{name}")
        assert reply.headers["omnigraph-graph-commit"] == answer["graph_commit_id"]
    commits = conforms(served.get("/graphs/atlas/commits"), "GET", f"{ATLAS}/commits")["commits"]
    commit = commits[0]["graph_commit_id"]
    one = conforms(served.get(f"/graphs/atlas/commits/{commit}"), "GET", f"{ATLAS}/commits/{{c}}")
    assert one == commits[0]
    outcome = served.get(f"/graphs/atlas/commits/{commit}/outcome")
    assert conforms(outcome, "GET", f"{ATLAS}/commits/{{c}}/outcome")["outcome"] == "published"


def test_a_refused_deletion_after_a_merge_is_told_in_the_merge(served: Served) -> None:
    for name, source in (("b", "main"), ("c", "b")):
        done(served.post("/graphs/atlas/branches", {"name": name, "from": source}))
    insert = {"query": 'query add() { insert Port { code: "A" } }', "branch": "b"}
    done(served.post("/graphs/atlas/mutate", insert))
    reply = served.post("/graphs/atlas/branches/merge", {"source": "b", "delete_branch": True}, x_request_id="mine")
    merged = conforms(reply, "POST", f"{ATLAS}/branches/merge")
    assert merged["branch_deleted"] is False
    refusal = merged["branch_delete_error_details"]
    shapes.ErrorBody.model_validate(refusal)
    assert (refusal["code"], refusal["effects"], refusal["request_id"]) == ("branch_has_descendants", "none", "mine")
    assert served.codes() == ["A"]


def test_branch_statements_answer_as_mutations(served: Served) -> None:
    def run(statement: str) -> Any:
        return conforms(served.post("/graphs/atlas/mutate", {"query": statement}), "POST", f"{ATLAS}/mutate")["outcome"]

    assert run("branch create b from main") == {"kind": "created", "branch": "b", "from": "main"}
    listed = conforms(served.post("/graphs/atlas/query", {"query": "branch list"}), "POST", f"{ATLAS}/query")
    assert {row["name"] for row in listed["rows"]} == {"main", "b"}
    assert run("branch merge b into main") == {"kind": "merged", "branch": "main", "merge": "already_up_to_date"}
    assert run("branch delete b") == {"kind": "deleted", "branch": "b"}
    refused(
        served.post(
            "/graphs/atlas/mutate/if-graph-commit",
            {"query": "branch create c from main"},
            omnigraph_if_graph_commit=served.head(),
        ),
        400,
        "bad_request",
        effects="none",
    )


@pytest.mark.parametrize("target", ["/healthz"])
def test_head_answers_as_get_without_the_body(served: Served, target: str) -> None:
    get, head = served.get(target), sound(served.send("HEAD", target), head=True)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]
