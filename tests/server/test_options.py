"""The flags and their variables: a flag wins, what can't be meant is refused in words."""

from __future__ import annotations

import pytest

from omnigraph.server.options import BadOptions, Options, read_options

OPEN = ["--cluster", "here", "--unauthenticated"]


def read(*arguments: str, **environ: str) -> Options:
    return read_options(arguments, environ)


def test_defaults() -> None:
    options = read(*OPEN)
    assert (options.host, options.port, options.grace_seconds) == ("127.0.0.1", 8080, 25)
    assert (options.public_hosts, options.allowed_origins, options.require_all_graphs) == ((), (), False)
    assert (options.log_format, options.log_level, options.check) == (None, "info", False)


def test_variables_stand_in_for_flags_and_flags_win() -> None:
    variables = {
        "OMNIGRAPH_CLUSTER": "there",
        "OMNIGRAPH_LISTEN_ADDR": "[::1]:9",
        "OMNIGRAPH_UNAUTHENTICATED": "1",
        "OMNIGRAPH_REQUIRE_ALL_GRAPHS": "1",
        "OMNIGRAPH_PUBLIC_HOSTS": "a.example, b.example",
        "OMNIGRAPH_ALLOWED_ORIGINS": "https://c.example",
        "OMNIGRAPH_SHUTDOWN_GRACE_SECONDS": "3600",
        "OMNIGRAPH_LOG_FORMAT": "text",
        "OMNIGRAPH_LOG": "ERROR",
    }
    options = read(**variables)
    assert (options.cluster, options.host, options.port, options.grace_seconds) == ("there", "::1", 9, 3_600)
    assert (options.public_hosts, options.allowed_origins) == (("a.example", "b.example"), ("https://c.example",))
    assert (options.log_format, options.log_level, options.require_all_graphs) == ("text", "error", True)
    given = read(
        "--cluster", "x", "--public-host", "c.example", "--bind", "127.0.0.1:0", "--log-level", "debug", **variables
    )
    assert (given.cluster, given.public_hosts, given.port, given.log_level) == ("x", ("c.example",), 0, "debug")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--unauthenticated"], "--cluster"),
        (["--cluster", "x"], "--unauthenticated"),
        ([*OPEN, "--bind", "0.0.0.0:80"], "loopback"),
        ([*OPEN, "--bind", "[::]:80"], "loopback"),
        ([*OPEN, "--bind", "graph.example:80"], "loopback"),
        ([*OPEN, "--bind", "8080"], "HOST:PORT"),
        ([*OPEN, "--bind", "localhost:x"], "HOST:PORT"),
        ([*OPEN, "--bind", "localhost:65536"], "HOST:PORT"),
        ([*OPEN, "--bind", "::1:80"], "HOST:PORT"),
        ([*OPEN, "--shutdown-grace-seconds", "0"], "invalid_shutdown_grace"),
        ([*OPEN, "--shutdown-grace-seconds", "3601"], "invalid_shutdown_grace"),
        ([*OPEN, "--shutdown-grace-seconds", "1.5"], "invalid_shutdown_grace"),
        ([*OPEN, "--log-format", "xml"], "log format"),
        ([*OPEN, "--log-level", "loud"], "log level"),
        ([*OPEN, "--allow-origin", "*"], "origin"),
        ([*OPEN, "--allow-origin", "https://a.example/"], "origin"),
        ([*OPEN, "--token-file", "x"], "unrecognized"),
        ([*OPEN, "--unauth"], "unrecognized"),
        ([*OPEN, "extra"], "unrecognized"),
    ],
)
def test_what_can_not_be_meant_is_refused(arguments: list[str], says: str) -> None:
    with pytest.raises(BadOptions, match=says):
        read(*arguments)


def test_tokens_that_would_not_be_asked_for_refuse_the_start() -> None:
    for name in ("OMNIGRAPH_SERVER_BEARER_TOKEN", "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"):
        with pytest.raises(BadOptions, match=name) as refused:
            read(*OPEN, **{name: "hunter2"})
        assert "hunter2" not in str(refused.value)


def test_a_wider_listener_needs_a_public_host() -> None:
    assert read(*OPEN, "--bind", "0.0.0.0:80", "--public-host", "graph.example").host == "0.0.0.0"


def test_unknown_variables_are_named_once() -> None:
    options = read(*OPEN, OMNIGRAPH_CLUSTR="x", OMNIGRAPH_LOCAL_SYNC="off", OMNIGRAPH_READ_THREADS="4", HOME="/")
    assert options.unknown_variables == ("OMNIGRAPH_CLUSTR",)


def test_help_and_version_end_well(capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("--help", "--version"):
        with pytest.raises(SystemExit) as ended:
            read(flag)
        assert ended.value.code == 0
    assert "omnigraph-server" in capsys.readouterr().out


def test_the_variables_of_reads_are_known() -> None:
    names = "MAX_RESULT_ROWS QUERY_TIMEOUT_MS TRAVERSAL_WORK_LIMIT TRAVERSAL INT64_JSON".split()
    assert read(*OPEN, **{f"OMNIGRAPH_{name}": "1" for name in names}).unknown_variables == ()
