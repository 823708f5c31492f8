"""`omnigraph version` and `--version`."""

from __future__ import annotations

from omnigraph import __version__
from support.command_line import Run


def test_version_names_the_contracts(run: Run) -> None:
    told = run("version", "--json").json
    assert told["version"] == __version__
    assert (told["http_api"], told["internal_schema_version"]) == ("1", 1)
    assert told["lance_version"].split(".")[0].isdigit()
    assert run("version").out.startswith(f"omnigraph {__version__}\nstorage format 1\n")


def test_the_flag_gives_one_line(run: Run) -> None:
    assert run("--version").out == f"omnigraph {__version__}\n"


def test_version_takes_no_graph(run: Run) -> None:
    assert run("version", "--store", "x").code == 2
