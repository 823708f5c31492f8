"""Server processes that start in tenths of a second: everything is imported once, each server is a fork of that.

    python nursery.py        reads {"arguments": […], "log": "file"} a line, answers the id of the process;
                             reads {"ended": id}, answers its exit status once it has ended

Nothing is opened and no thread is started before a fork, so that a child is as fresh as a new program; it runs the
program's own `main`. At the end of its input the nursery kills the children that are left, and goes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import warnings
from typing import Any

from omnigraph.engine import graph as _graph  # noqa: F401 - imported before the forks, for their sake, as the next
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.server import main as program
from omnigraph.server import process as _process  # noqa: F401


def start(arguments: list[str], log: str) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        code = program.main(arguments)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    finally:
        os._exit(code)


def main() -> None:
    compile_schema("node Port { code: String @key }", mint=lambda: "0" * 16)  # the grammars are built once, too
    parse_file("query m($c: String) { insert Port { code: $c } }")
    # nothing of the table library runs before a fork, so what it warns of can't happen
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    children: set[int] = set()
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        if "ended" in asked:
            _, status = os.waitpid(asked["ended"], 0)
            children.discard(asked["ended"])
            answer = status
        else:
            answer = start(asked["arguments"], asked["log"])
            children.add(answer)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
