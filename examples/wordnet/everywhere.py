"""Load all WordNet on a local folder and on S3, and check every known answer on both.

    python -m examples.wordnet.everywhere DATA

is `make wordnet DATA=<folder>`, run from the checkout. The folder holds the four .jsonl.gz files that `convert` writes; the
right answers are taken from its `facts.json`, or computed from the records if there is none. The S3 server is the one of
the tests, on the loopback address; it and everything written are gone afterwards.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from examples.wordnet.check import check
from examples.wordnet.facts import facts
from examples.wordnet.records import FILES, read_folder
from tests.support.seaweed import shared_server

USAGE = f"""make wordnet DATA=<folder>: the folder holds {", ".join(FILES)}.
Make them from the database (in Debian: package wordnet-base) with
  .venv/bin/python -m examples.wordnet.convert /usr/share/wordnet <folder>"""


def facts_of(data: Path, scratch: Path) -> Path:
    """The folder's own facts.json, else one computed into `scratch`."""
    given = data / "facts.json"
    if given.is_file():
        return given
    computed = scratch / "facts.json"
    computed.write_text(json.dumps(facts(read_folder(data))))
    return computed


def main() -> int:
    data = Path(sys.argv[1]).resolve() if len(sys.argv) == 2 and sys.argv[1] else None
    if data is None or not all((data / name).is_file() for name in FILES):
        print(USAGE)
        return 2
    with tempfile.TemporaryDirectory(prefix="omnigraph-wordnet-") as folder:
        scratch = Path(folder)
        known = facts_of(data, scratch)
        right = check(str(scratch / "wordnet.omni"), data, known)
        server = shared_server(scratch / "s3", os.getpid())
        os.environ.update(server.env)
        right &= check(f"s3://{server.bucket}/wordnet.omni", data, known)
    print("Every answer is right on both." if right else "An answer is wrong.")
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
