"""The lock file, the Makefile and the dependency ranges agree with each other."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

CHECKOUT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
LOCK = (CHECKOUT / "requirements-dev.lock").read_text()
LOCKED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==(\S+)", re.MULTILINE)

DIRECT = [
    *PROJECT["project"]["dependencies"],
    *(each for extra in PROJECT["project"]["optional-dependencies"].values() for each in extra),
    *(each for group in PROJECT["dependency-groups"].values() for each in group),
]


def locked_versions() -> dict[str, set[str]]:
    versions: dict[str, set[str]] = {}
    for name, version in LOCKED.findall(LOCK):
        versions.setdefault(canonicalize_name(name), set()).add(version)
    return versions


@pytest.mark.parametrize("text", DIRECT)
def test_a_direct_dependency_is_bounded_and_its_locked_version_fits(text: str) -> None:
    requirement = Requirement(text)
    operators = {specifier.operator for specifier in requirement.specifier}
    assert operators & {"~=", "<", "<=", "=="}, f"{text} has no upper bound"
    versions = locked_versions()[canonicalize_name(requirement.name)]
    assert all(Version(version) in requirement.specifier for version in versions)


_IMPORTED_AS = {"google-re2": "re2", "pylance": "lance", "python-graphblas": "graphblas", "pyyaml": "yaml"}


def test_the_package_imports_all_that_it_is_installed_with() -> None:
    sources = "\n".join(path.read_text() for path in (CHECKOUT / "src").rglob("*.py"))
    for text in PROJECT["project"]["dependencies"]:
        name = Requirement(text).name
        module = _IMPORTED_AS.get(name, name)
        assert re.search(rf"^\s*(import {module}\b|from {module}\b)", sources, re.MULTILINE), (
            f"src never imports {name}"
        )


def test_every_locked_package_is_held_by_its_hashes() -> None:
    blocks = re.split(r"^(?=[A-Za-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert len(blocks) > 50
    assert [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_the_lock_file_names_no_host_and_no_path() -> None:
    assert re.findall(r"\S*://\S*|--(?:extra-)?index-url\S*|--find-links\S*|\bfile:\S*", LOCK) == []


@pytest.mark.skipif(shutil.which("make") is None, reason="the checkout's own verbs need make; the package does not")
def test_bare_make_lists_every_verb() -> None:
    makefile = (CHECKOUT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    listed = subprocess.run(["make"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    assert sorted(re.findall(r"^  make (\S+)", listed, re.MULTILINE)) == sorted(phony.split())
    assert {"demo", "test", "bench", "lint", "faults", "wordnet", "docs", "clean"} <= set(phony.split())
