"""Settings of a read (languages.md 19): from the environment, the handle and the call, each on top of the one before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.ambient import SystemClock
from omnigraph.engine.graph import Graph
from omnigraph.engine.reading.context import Context
from omnigraph.engine.settings import RequestSettings, request_settings
from omnigraph.errors import InvalidQuery, InvalidRequest, LimitExceeded, QueryTimeout
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.query.parse import parse_file
from omnigraph.query.limits import QuerySettings

SCHEMA = "node Port { code: String @key } edge Ferry: Port -> Port"
READ = "query q() { match { $p: Port } return { $p.code } }"
CROSS = "query q() { match { $p: Port  $q: Port } return { count($p) as n } }"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    graph.load([{"type": "Port", "data": {"code": code}} for code in "ABC"], mode="append")
    return graph.uri


class _Hurrying(SystemClock):
    """A second passes between any two looks at it."""

    def __init__(self) -> None:
        self._looks = 0

    def boot_seconds(self) -> float:
        self._looks += 1
        return float(self._looks)


def rows_or_limit(graph: Graph, **given: Any) -> int:
    """How many rows come, or the limit that was met as a negative number."""
    try:
        return len(graph.query(READ, **given))
    except LimitExceeded as met:
        return -met.limit


def test_the_environment_holds_the_defaults_and_what_is_nearer_wins(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_MAX_RESULT_ROWS", "2")
    assert rows_or_limit(omnigraph.open(uri)) == -2
    assert rows_or_limit(omnigraph.open(uri), settings={"max_result_rows": 3}) == 3
    opened = omnigraph.open(uri, settings={"max_result_rows": 5})
    assert rows_or_limit(opened) == 3
    assert rows_or_limit(opened, settings={"max_result_rows": 1}) == -1


def test_every_limit_of_a_read_has_a_variable_and_its_refusal_says_how_to_raise_it(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_WORK_LIMIT", "8")
    with pytest.raises(LimitExceeded, match="raise traversal_work_limit") as caught:
        omnigraph.open(uri).query(CROSS)
    assert caught.value.limit == 8
    assert omnigraph.open(uri).query(CROSS, settings={"traversal_work_limit": 9}).scalar() == 9
    monkeypatch.setenv("OMNIGRAPH_QUERY_TIMEOUT_MS", "1")
    graph = omnigraph.open(uri)
    graph.core.clock = _Hurrying()
    with pytest.raises(QueryTimeout, match="raise query_timeout_ms"):
        graph.query(READ)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("OMNIGRAPH_MAX_RESULT_ROWS", value) for value in ("many", "0", "-1", "1.5", str(2**31), "9" * 5_000)),
        ("OMNIGRAPH_QUERY_TIMEOUT_MS", "3600001"),
        ("OMNIGRAPH_TRAVERSAL_WORK_LIMIT", str(2**63)),
        ("OMNIGRAPH_TRAVERSAL", "fast"),
        ("OMNIGRAPH_INT64_JSON", "float"),
        ("OMNIGRAPH_ANN_NPROBES", "-1"),
        ("OMNIGRAPH_EXACT_NEAREST", "true"),
        ("OMNIGRAPH_FTS_SCRATCH_ROWS", str(2**31)),
        ("OMNIGRAPH_WRITE_BYTES", "none"),
        ("OMNIGRAPH_LOCAL_SYNC", "maybe"),
        ("OMNIGRAPH_CACHE_BYTES", "much"),
    ],
)
def test_a_bad_value_of_a_variable_refuses_to_open_and_to_make_a_graph(
    uri: str, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, tmp_path: Path
) -> None:
    monkeypatch.setenv(variable, value)
    for door in (lambda: omnigraph.open(uri), lambda: omnigraph.init(tmp_path / "new", schema=SCHEMA)):
        with pytest.raises(InvalidRequest, match=variable) as caught:
            door()
        assert caught.value.code == "invalid_setting"
    assert not (tmp_path / "new").exists()


def test_a_number_of_too_many_digits_is_a_bad_value_like_any_other(uri: str) -> None:
    with pytest.raises(InvalidRequest, match="max_result_rows is an integer from 1 to"):
        omnigraph.open(uri).query(READ, settings={"max_result_rows": "9" * 5_000})


def test_the_settings_of_search_reach_the_run_from_the_environment_the_call_and_the_text() -> None:
    variables = {"OMNIGRAPH_ANN_NPROBES": "0", "OMNIGRAPH_EXACT_NEAREST": "on", "OMNIGRAPH_FTS_SCRATCH_ROWS": "7"}
    process = RequestSettings.from_environment(variables)
    assert process.query == QuerySettings(ann_nprobes=0, exact_nearest=True, fts_scratch_rows=7)
    asked = request_settings({"ann_nprobes": "5", "fts_scratch_rows": 0}, process)
    lines = parse_file("set exact_nearest = off; set ann_nprobes = 6; reset fts_scratch_rows;").settings
    assert asked.with_lines(lines).query == QuerySettings(ann_nprobes=6, exact_nearest=False, fts_scratch_rows=7)
    assert RequestSettings.from_environment({}).query == QuerySettings()


def test_what_the_process_decides_is_out_of_reach_of_others(uri: str) -> None:
    own = omnigraph.open(uri)
    line = "set fts_scratch_rows = 5;"
    assert shown(own, f"{line} show fts_scratch_rows") == {"fts_scratch_rows": ("5", "200000", "file")}
    of_others = Graph(Context(own.core, capped=True))
    insert = 'query m() { insert Port { code: "D" } }'
    for sent in (
        lambda: of_others.query(f"{line} show all"),
        lambda: of_others.query(f"set max_result_rows = 3; {line} {READ}"),
        lambda: of_others.mutate(f"{line} {insert}"),
    ):
        with pytest.raises(InvalidQuery) as caught:
            sent()
        assert isinstance(caught.value.diagnostic, Diagnostic)
        assert (caught.value.diagnostic.code, caught.value.diagnostic.stage) == ("Q003", "settings")
    for send in (of_others.query, of_others.mutate):
        with pytest.raises(InvalidRequest, match="OMNIGRAPH_FTS_SCRATCH_ROWS") as refused:
            send(READ if send == of_others.query else insert, settings={"fts_scratch_rows": 5})
        assert refused.value.code == "invalid_setting"
    assert len(of_others.query(f"reset fts_scratch_rows; reset all; {READ}")) == 3
    assert shown(of_others, "show fts_scratch_rows") == {"fts_scratch_rows": ("200000", "200000", "default")}
    assert len(of_others.query(f"set ann_nprobes = 0; set exact_nearest = on; {READ}")) == 3


# --- lines of the text itself


def shown(graph: Graph, text: str, **given: Any) -> dict[str, tuple[str, str, str]]:
    rows = graph.query(text, **given).to_dict()["rows"]
    assert {row["name"] for row in rows if row["scope"] != "request"} <= {"fts_scratch_rows"}
    return {row["name"]: (row["value"], row["default"], row["source"]) for row in rows}


def test_lines_of_the_text_win_and_a_later_one_wins_over_an_earlier_one(uri: str) -> None:
    graph = omnigraph.open(uri)
    assert len(graph.query(f"set max_result_rows = 3; {READ}", settings={"max_result_rows": 1})) == 3
    with pytest.raises(LimitExceeded) as caught:
        graph.query(f"set max_result_rows = 3; set max_result_rows = 2; {READ}")
    assert caught.value.limit == 2
    count = "query n() { match { $p: Port } return { count($p) as n } }"
    assert graph.query(f"set int64_json = string;\n{count}").to_dict()["rows"] == [{"n": "3"}]
    assert graph.query(count).to_dict()["rows"] == [{"n": 3}]


def test_reset_goes_back_to_the_default_of_the_process(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_MAX_RESULT_ROWS", "2")
    graph = omnigraph.open(uri, settings={"max_result_rows": 9})
    assert len(graph.query(READ)) == 3
    for line in ("reset max_result_rows;", "set max_result_rows = 5; reset all;"):
        with pytest.raises(LimitExceeded) as caught:
            graph.query(f"{line} {READ}")
        assert caught.value.limit == 2


def test_show_tells_value_default_and_where_it_came_from(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_QUERY_TIMEOUT_MS", "5")
    graph = omnigraph.open(uri)
    assert shown(graph, "show traversal") == {"traversal": ("auto", "auto", "default")}
    everything = shown(graph, "set int64_json = string; show all;", settings={"max_result_rows": 7})
    assert everything == {
        "ann_nprobes": ("20", "20", "default"),
        "exact_nearest": ("off", "off", "default"),
        "fts_scratch_rows": ("200000", "200000", "default"),
        "int64_json": ("string", "number", "file"),
        "max_result_rows": ("7", "1000000", "request"),
        "query_timeout_ms": ("5", "5", "env"),
        "traversal": ("auto", "auto", "default"),
        "traversal_work_limit": ("100000000", "100000000", "default"),
    }
    assert shown(graph, "set query_timeout_ms = 9; reset query_timeout_ms; show query_timeout_ms") == {
        "query_timeout_ms": ("5", "5", "env")
    }


def test_a_mutation_takes_settings_and_is_no_place_for_show(uri: str) -> None:
    graph = omnigraph.open(uri)
    insert = 'set traversal = matrix; query m() { insert Port { code: "D" } }'
    assert graph.mutate(insert, settings={"max_result_rows": 1}).affected_nodes == 1
    with pytest.raises(InvalidRequest, match="no setting 'speed'"):
        graph.mutate(insert, settings={"speed": 1})
    with pytest.raises(InvalidQuery, match="no setting `speed`"):
        graph.mutate('set speed = 1; query m() { insert Port { code: "E" } }')
    with pytest.raises(InvalidRequest) as caught:
        graph.mutate("show all")
    assert (caught.value.code, caught.value.effects) == ("wrong_verb", "none")


def test_show_takes_no_company(uri: str) -> None:
    company: list[dict[str, Any]] = [{"n": 1}, {"branch": "main"}, {"query_name": "q"}]
    for given in company:
        with pytest.raises(InvalidRequest, match="A `show` statement takes no"):
            omnigraph.open(uri).query("show all", **given)


def test_settings_lines_alone_are_no_query(uri: str) -> None:
    with pytest.raises(InvalidQuery, match="Q004"):
        omnigraph.open(uri).query("set max_result_rows = 3;")


def test_the_memory_of_a_query_is_for_the_environment_to_say(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_QUERY_MEMORY_BYTES", "100")
    graph = omnigraph.open(uri)
    with pytest.raises(LimitExceeded, match="OMNIGRAPH_QUERY_MEMORY_BYTES") as caught:
        graph.query(CROSS)
    assert (caught.value.limit, caught.value.resource) == (100, "query_memory")
    with pytest.raises(InvalidRequest, match="There is no setting 'memory_bytes'"):
        graph.query(CROSS, settings={"memory_bytes": 1_000})
    for bad in ("0", "many", "-1"):
        monkeypatch.setenv("OMNIGRAPH_QUERY_MEMORY_BYTES", bad)
        with pytest.raises(InvalidRequest, match="OMNIGRAPH_QUERY_MEMORY_BYTES") as refused:
            omnigraph.open(uri)
        assert refused.value.code == "invalid_setting"
