"""docs/server.md: its commands run as they stand, and it leaves out no route, flag, variable or code."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from omnigraph.server.app import routed
from omnigraph.server.limits import VARIABLES
from omnigraph.server.options import read_options
from server.asgi import CODES

CHECKOUT = Path(__file__).resolve().parents[2]
MANUAL = (CHECKOUT / "docs" / "server.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = """
set -e
omnigraph() {{ {python} -c 'from omnigraph.cli.main import main; main()' "$@"; }}
omnigraph-server() {{ exec {python} -m omnigraph.server.main "$@"; }}
"""


def blocks() -> list[tuple[str, str]]:
    """Commands, each with what they print."""
    found = BLOCK.findall(MANUAL)
    pairs: list[tuple[str, str]] = []
    for kind, text in found:
        if kind == "sh":
            pairs.append((text, ""))
        else:
            assert kind in ("json", "text")
            pairs[-1] = (pairs[-1][0], text)
    return pairs


def like(told: Any, printed: Any) -> bool:
    """Equal, where `…` stands for any text and times for any time."""
    if isinstance(told, dict):
        return (
            isinstance(printed, dict)
            and told.keys() == printed.keys()
            and all(key == "created_at" or like(value, printed[key]) for key, value in told.items())
        )
    if isinstance(told, list):
        return isinstance(printed, list) and len(told) == len(printed) and all(map(like, told, printed))
    if isinstance(told, str) and isinstance(printed, str):
        return re.fullmatch(".*".join(map(re.escape, told.split("…"))), printed, re.DOTALL) is not None
    return told == printed and type(told) is type(printed)


def test_the_commands_print_what_the_manual_says(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    mark = "<next>"
    script = PROGRAMS.format(python=sys.executable) + "".join(f"{text}\necho '{mark}'\n" for text, _ in blocks())
    script = script.replace("8080", str(port)).replace("--cluster .", f"--cluster . --bind 127.0.0.1:{port}")
    path = os.pathsep.join([str(CHECKOUT / "src"), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        ["bash", "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "OMNIGRAPH_HOME": str(tmp_path / "home")},
        start_new_session=True,
    )
    try:
        printed, complaints = process.communicate(timeout=100)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
    assert process.returncode == 0, printed + complaints
    for (command, told), came in zip(blocks(), printed.split(f"{mark}\n"), strict=False):
        try:
            equal = like(json.loads(told), json.loads(came))
        except ValueError:
            equal = like(told.splitlines(), came.splitlines())
        assert equal, f"{command}\nprinted\n{came}\nand the manual says\n{told}"


def test_it_names_every_route_with_its_methods() -> None:
    rows = re.findall(r"^\| ([A-Z ]+) \| `(/[^`]*)` \|", MANUAL, re.MULTILINE)
    told = sorted((method, path) for methods, path in rows for method in methods.split())
    routes = [route for route in routed().router.routes if isinstance(route, APIRoute)]
    assert told == sorted((method, route.path_format) for route in routes for method in route.methods or ())


def test_it_names_every_flag_and_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_options(["--help"], {})
    flags = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out)) - {"--help", "--version"}
    assert flags == set(re.findall(r"^\| `(--[a-z-]+)", MANUAL, re.MULTILINE))
    for variable in VARIABLES.values():
        assert f"`{variable}`" in MANUAL


def test_it_names_every_code_with_its_status() -> None:
    table = MANUAL.partition("| code | status |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ((?:`\w+` ?)+) \| ([0-9 ]+) \|", table, re.MULTILINE)
    told = {code: set(statuses.split()) for codes, statuses in rows for code in re.findall(r"\w+", codes)}
    assert told.keys() == CODES.keys()
    for code, statuses in CODES.items():
        assert {str(status) for status in statuses} <= told[code]
