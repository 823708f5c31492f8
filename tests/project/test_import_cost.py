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


USE = r"""
import sys
import tempfile
import omnigraph
schema = "node Person { name: String @key }\nedge Knows: Person -> Person"
with omnigraph.init(tempfile.mkdtemp() + "/g", schema=schema) as graph:
    graph.mutate("query add($a: String) { insert Person { name: $a } }", a="Ann")
    graph.query("query met($a: String) { match { $p: Person { name: $a }  $p knows $q } return { $q.name } }", a="Ann")
print('loaded:', *sorted({'graphblas', 'numba'} & set(sys.modules)))
"""


def test_a_write_and_a_small_hop_load_no_engine_that_they_do_not_use() -> None:
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"
