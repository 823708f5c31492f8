"""The wheel works where nothing else is: with its runtime dependencies alone, in an empty environment.

The dependencies are installed at the lock file's versions, so that a release elsewhere can't turn this test red.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SCHEMA = "node Port { code: String @key  name: String? }\nedge Ferry: Port -> Port { line: String? }\n"

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600), pytest.mark.xdist_group("packaging")]


def run(*command: str | Path, cwd: Path) -> str:
    """Run without the surrounding environment's Python settings, so that nothing of it shines through."""
    clean = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, CHECKOUT, cwd=out)
    (built,) = out.glob("omnigraph-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of programs of an environment that holds the wheel and what it asks for."""
    root = tmp_path_factory.mktemp("empty")
    venv.create(root / "environment", with_pip=True)
    pinned = re.findall(
        r"^[a-z0-9][^\s;]*==\S+(?: ;[^\\\n]*)?", (CHECKOUT / "requirements-dev.lock").read_text(), re.MULTILINE
    )
    (root / "constraints.txt").write_text("\n".join(pinned) + "\n")
    programs = root / "environment" / "bin"
    run(
        programs / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        root / "constraints.txt",
        wheel,
        cwd=root,
    )
    yield programs
    shutil.rmtree(root / "environment")  # half a gigabyte


def test_the_wheel_holds_the_types_marker_the_grammars_and_the_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "omnigraph/py.typed" in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "examples/", "benchmarks/", "typings/"))]
    data = {
        path.relative_to(CHECKOUT / "src").as_posix()
        for path in (CHECKOUT / "src" / "omnigraph").rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert data <= set(names)


def test_the_installed_package_needs_nothing_but_its_runtime_dependencies(installed: Path, tmp_path: Path) -> None:
    schema = tmp_path / "ports.pg"
    schema.write_text(SCHEMA)
    assert "omnigraph" in run(installed / "omnigraph", "version", cwd=tmp_path)
    run(installed / "omnigraph", "init", tmp_path / "ports.omni", "--schema", schema, cwd=tmp_path)
    assert (tmp_path / "ports.omni" / "__graph.json").is_file()
    read_back = "import omnigraph; print(omnigraph.open('ports.omni').schema.source)"
    assert "node Port" in run(installed / "python", "-c", read_back, cwd=tmp_path)
