"""Starting is cheap: the package and the command's help load no engine."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("duckdb", "graphblas", "lance", "numba", "numpy", "pandas", "polars", "pyarrow", "suitesparse_graphblas")

DOORS = {
    "import omnigraph": "import omnigraph",
    "the exception tree": "from omnigraph.errors import OmnigraphError",
    "omnigraph --help": "import sys; sys.argv = ['omnigraph', '--help']\nfrom omnigraph.cli.main import main",
}


@pytest.mark.parametrize("door", DOORS)
def test_no_engine_is_loaded_by(door: str) -> None:
    run_help = "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code\n" if "--help" in door else ""
    report = f"import sys\nprint('loaded:', *sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    script = f"{DOORS[door]}\n{run_help}{report}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"
