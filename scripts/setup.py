"""Make the virtual environment `.venv` that the lock file describes, unless it stands already.

Needs nothing but Python 3.11 and its pip. The environment is built anew only when the lock file or the interpreter
changes, and the package itself is installed again, editable, when pyproject.toml does. The stamps are written last, so
an interrupted set-up is done over.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
ENVIRONMENT = CHECKOUT / ".venv"
LOCK = CHECKOUT / "requirements-dev.lock"
PROJECT = CHECKOUT / "pyproject.toml"


def digest(*parts: bytes) -> str:
    """One SHA-256 over several inputs, kept apart by their own digests."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def stands(stamp: Path, wanted: str) -> bool:
    return stamp.is_file() and stamp.read_text() == wanted


def pip(*arguments: str) -> None:
    """Run the environment's pip; it speaks for itself when it fails."""
    python = ENVIRONMENT / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *arguments]
    subprocess.run(command, cwd=CHECKOUT, check=True)


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever starts this may have an older one
        print(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}; try: make PYTHON=python3.11 …")
        return 1
    interpreter = f"{sys.version} {sysconfig.get_platform()}".encode()
    locked, installed = ENVIRONMENT / "lock.sha256", ENVIRONMENT / "project.sha256"
    wanted_lock = digest(LOCK.read_bytes(), interpreter)
    wanted_project = digest(PROJECT.read_bytes())
    try:
        if not stands(locked, wanted_lock):
            print("Setting up .venv from requirements-dev.lock (about two minutes, once)", flush=True)
            shutil.rmtree(ENVIRONMENT, ignore_errors=True)
            venv.create(ENVIRONMENT, with_pip=True)
            pip("--require-hashes", "--requirement", str(LOCK))
            locked.write_text(wanted_lock)
        if not stands(installed, wanted_project):
            pip("--no-deps", "--no-build-isolation", "--editable", ".")
            installed.write_text(wanted_project)
    except subprocess.CalledProcessError as failed:
        print(f"Setting up .venv failed: pip ended with {failed.returncode}. The next make starts over.")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
