"""A text as what a `nearest` looks for: the graph's provider makes a vector of it, when the query runs and not before."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.embed.embedder import Embedder
from omnigraph.errors import EmbeddingFailed, InvalidRequest

SCHEMA = """
node Memo { code: String @key  text: String  place: Vector(8)? @embed("text", model="mock-v1") }
node Loose { code: String @key  place: Vector(8)? }
"""
NEAREST = "match { $m: Memo } return { $m.code, nearest($m.place, %s) as d } order { nearest($m.place, %s) } limit 5"


@pytest.fixture
def mock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")


def made(root: Path, schema: str = SCHEMA) -> omnigraph.Graph:
    graph = omnigraph.init(root / "g", schema=schema)
    places = {"a": [1.0] + [0.0] * 7, "b": [0.0] * 7 + [1.0], "c": [-1.0] + [0.0] * 7}
    rows = [
        {"type": name, "data": {"code": code, "place": place, **({"text": code} if name == "Memo" else {})}}
        for name in ("Memo", "Loose")
        for code, place in places.items()
    ]
    graph.load(rows, mode="append", progress=False)
    return graph


@pytest.mark.usefixtures("mock")
def test_a_text_is_near_to_what_its_vector_is_near_to(tmp_path: Path) -> None:
    graph = made(tmp_path)
    core = graph._core
    assert core.embedder is not None
    vector = core.embedder.vector("harbour", "query", model="mock-v1", dimensions=8)
    text = f"query q($q: String) {{ {NEAREST % ('$q', '$q')} }}"
    by_text = graph.query(text, {"q": "harbour"}).table.to_pylist()
    by_vector = graph.query(f"query q($q: Vector(8)) {{ {NEAREST % ('$q', '$q')} }}", {"q": list(vector)})
    assert by_text == by_vector.table.to_pylist()
    assert len(by_text) == 3
    literal = graph.query("query q() { " + NEAREST % ('"harbour"', '"harbour"') + " }")
    assert literal.table.to_pylist() == by_text


def test_without_a_provider_the_query_is_refused_and_says_what_is_missing(tmp_path: Path) -> None:
    graph = made(tmp_path)
    with pytest.raises(EmbeddingFailed, match="OMNIGRAPH_EMBED_PROVIDER") as caught:
        graph.query(f"query q($q: String) {{ {NEAREST % ('$q', '$q')} }}", {"q": "harbour"})
    assert (caught.value.code, caught.value.reason, caught.value.status) == ("embedding_failed", "no_provider", 424)


@pytest.mark.usefixtures("mock")
def test_another_model_than_the_schema_records_is_refused(tmp_path: Path) -> None:
    graph = made(tmp_path, SCHEMA.replace("mock-v1", "mock-v2"))
    with pytest.raises(EmbeddingFailed, match="mock-v2") as caught:
        graph.query(f"query q($q: String) {{ {NEAREST % ('$q', '$q')} }}", {"q": "harbour"})
    assert caught.value.reason == "model"
    # a property that records none takes any
    loose = "match { $m: Loose } return { $m.code } order { nearest($m.place, $q) } limit 1"
    assert graph.query(f"query q($q: String) {{ {loose} }}", {"q": "harbour"}).table.num_rows == 1


@pytest.mark.usefixtures("mock")
def test_nothing_is_embedded_by_explain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = made(tmp_path)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a text was embedded")

    monkeypatch.setattr(Embedder, "vector", never)
    plan = graph.query(f"explain query q($q: String) {{ {NEAREST % ('$q', '$q')} }}", {"q": "harbour"})
    assert "nearest" in str(plan.table.to_pylist())


def test_a_bad_provider_in_the_environment_refuses_to_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path).close()
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "oracle")
    with pytest.raises(InvalidRequest, match="OMNIGRAPH_EMBED_PROVIDER"):
        omnigraph.open(tmp_path / "g")
