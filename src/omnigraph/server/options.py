"""The flags of `omnigraph-server` and their variables (interfaces.md 11.1). A flag beats its variable."""

from __future__ import annotations

import argparse
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from omnigraph._version import __version__
from omnigraph.embed.config import EMBED_VARIABLES
from omnigraph.engine.settings import SETTING_VARIABLES
from omnigraph.server.limits import VARIABLES
from omnigraph.server.logs import LEVELS

GRACE_SECONDS, GRACE_SECONDS_MAX = 25, 3_600

_TOKENS = "OMNIGRAPH_SERVER_BEARER_TOKEN"
_PROVIDER_KEYS = "OMNIGRAPH_PROVIDER_KEY_"
_FLAG_VARIABLES = (
    "OMNIGRAPH_CLUSTER OMNIGRAPH_LISTEN_ADDR OMNIGRAPH_UNAUTHENTICATED OMNIGRAPH_REQUIRE_ALL_GRAPHS"
    " OMNIGRAPH_PUBLIC_HOSTS OMNIGRAPH_ALLOWED_ORIGINS OMNIGRAPH_SHUTDOWN_GRACE_SECONDS OMNIGRAPH_LOG_FORMAT OMNIGRAPH_LOG"
).split()
_ELSEWHERE_VARIABLES = (  # of the engine and of the command, which may share an environment with the server
    "OMNIGRAPH_CACHE_BYTES OMNIGRAPH_LOAD_EXPANDED_BYTES OMNIGRAPH_LOAD_LINE_BYTES OMNIGRAPH_LOCAL_SYNC"
    " OMNIGRAPH_STORAGE_REQUEST_TIMEOUT_SECONDS OMNIGRAPH_WRITE_BYTES OMNIGRAPH_WRITE_ENTITIES"
    " OMNIGRAPH_HOME OMNIGRAPH_PROFILE"
).split()
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+")
_PLACE = re.compile(r"(\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]\s]+)):(?P<port>[0-9]{1,5})")


class BadOptions(ValueError):
    """What is wrong, in words for the operator."""


@dataclass(frozen=True, slots=True)
class Options:
    """Checked. `unknown_variables` are warned about once."""

    cluster: str
    host: str
    port: int
    require_all_graphs: bool
    public_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    grace_seconds: int
    log_format: str | None
    log_level: str
    check: bool
    unknown_variables: tuple[str, ...]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadOptions(message)


def read_options(arguments: Sequence[str] | None, environ: Mapping[str, str]) -> Options:
    """Raises BadOptions; SystemExit(0) after `--help` and `--version`."""
    given = _parser().parse_args(arguments)
    cluster = given.cluster or environ.get("OMNIGRAPH_CLUSTER")
    if not cluster:
        raise BadOptions("name the cluster with --cluster DIR|URI or OMNIGRAPH_CLUSTER")
    host, port = _place(given.bind or environ.get("OMNIGRAPH_LISTEN_ADDR") or "127.0.0.1:8080")
    public_hosts = _listed(given.public_host, environ, "OMNIGRAPH_PUBLIC_HOSTS")
    if not given.check:
        _check_open_mode(
            given.unauthenticated or _on(environ, "OMNIGRAPH_UNAUTHENTICATED"), host, public_hosts, environ
        )
    grace = given.shutdown_grace_seconds or environ.get("OMNIGRAPH_SHUTDOWN_GRACE_SECONDS") or str(GRACE_SECONDS)
    return Options(
        cluster=cluster,
        host=host,
        port=port,
        require_all_graphs=given.require_all_graphs or _on(environ, "OMNIGRAPH_REQUIRE_ALL_GRAPHS"),
        public_hosts=public_hosts,
        allowed_origins=_origins(_listed(given.allow_origin, environ, "OMNIGRAPH_ALLOWED_ORIGINS")),
        grace_seconds=_grace(grace),
        log_format=_one_of("log format", given.log_format or environ.get("OMNIGRAPH_LOG_FORMAT"), ("text", "json")),
        log_level=_one_of("log level", (given.log_level or environ.get("OMNIGRAPH_LOG") or "info").lower(), LEVELS)
        or "info",
        check=given.check,
        unknown_variables=tuple(sorted(name for name in environ if name.startswith("OMNIGRAPH_") and not _known(name))),
    )


def _parser() -> _Parser:
    parser = _Parser(
        prog="omnigraph-server", description="Serve the graphs of a cluster over HTTP.", allow_abbrev=False
    )
    add = parser.add_argument
    add("--cluster", metavar="DIR|URI", help="configuration folder or storage root")
    add("--bind", metavar="HOST:PORT", help="where to listen; default 127.0.0.1:8080")
    add(
        "--unauthenticated", action="store_true", help="serve without tokens; on loopback unless --public-host is given"
    )
    add("--require-all-graphs", action="store_true", help="a graph that can't be opened fails the start")
    add(
        "--public-host",
        action="append",
        metavar="HOST",
        help="a name under which callers reach this server; repeatable",
    )
    add("--allow-origin", action="append", metavar="ORIGIN", help="a web page that may ask this server; repeatable")
    add("--shutdown-grace-seconds", metavar="N", help="how long admitted work may take after a stop signal; default 25")
    add("--log-format", metavar="text|json", help="default json, text on a terminal")
    add("--log-level", metavar="LEVEL", help=f"{', '.join(LEVELS)}; default info")
    add("--check", action="store_true", help="open everything, say what was found, and end; takes no lock")
    add("--version", action="version", version=f"omnigraph-server {__version__}")
    return parser


def _listed(given: list[str] | None, environ: Mapping[str, str], variable: str) -> tuple[str, ...]:
    return tuple(given or [item.strip() for item in environ.get(variable, "").split(",") if item.strip()])


def _on(environ: Mapping[str, str], variable: str) -> bool:
    return environ.get(variable) == "1"


def _one_of(what: str, given: str | None, allowed: Sequence[str]) -> str | None:
    if given and given not in allowed:
        raise BadOptions(f"the {what} is one of {', '.join(allowed)}")
    return given or None


def _place(text: str) -> tuple[str, int]:
    match = _PLACE.fullmatch(text)
    if match is None or int(match["port"]) > 65_535:
        raise BadOptions("--bind takes HOST:PORT")
    return match["six"] or match["name"], int(match["port"])


def _grace(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= GRACE_SECONDS_MAX:
        raise BadOptions(
            f"invalid_shutdown_grace: --shutdown-grace-seconds takes whole seconds from 1 to {GRACE_SECONDS_MAX:,}"
        )
    return int(text)


def _origins(given: tuple[str, ...]) -> tuple[str, ...]:
    for origin in given:
        if not _ORIGIN.fullmatch(origin):
            raise BadOptions("--allow-origin takes an origin such as https://console.example, without a path")
    return given


def _check_open_mode(open_mode: bool, host: str, public_hosts: tuple[str, ...], environ: Mapping[str, str]) -> None:
    """Without tokens nobody is kept out but by the network."""
    tokens = sorted(name for name, value in environ.items() if name.startswith(_TOKENS) and value)
    if tokens:
        raise BadOptions(f"{tokens[0]} is set, and tokens are not part of this version: unset it to serve openly")
    if not open_mode:
        raise BadOptions("tokens are not part of this version: start with --unauthenticated to serve openly")
    if not _is_loopback(host) and not public_hosts:
        raise BadOptions("without tokens the server binds to loopback only; --public-host says that more is meant")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _known(name: str) -> bool:
    return name.startswith((_TOKENS, _PROVIDER_KEYS)) or name in {
        *_FLAG_VARIABLES,
        *_ELSEWHERE_VARIABLES,
        *EMBED_VARIABLES,
        *SETTING_VARIABLES,
        *VARIABLES.values(),
    }
