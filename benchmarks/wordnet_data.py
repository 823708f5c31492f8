"""The data of the ratios: all WordNet if its folder is given, else the excerpt that comes with the examples."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks import CHECKOUT
from examples.wordnet.records import FILES

VARIABLE = "OMNIGRAPH_WORDNET"
SCHEMA = CHECKOUT / "examples" / "wordnet" / "wordnet.pg"
_EXCERPT = CHECKOUT / "examples" / "wordnet" / "excerpt.jsonl.gz"


@dataclass(frozen=True, slots=True)
class WordNet:
    """`path`: one gzipped file of records. `whole`: all of WordNet, which the targets are about."""

    path: Path
    whole: bool

    @property
    def name(self) -> str:
        return "WordNet" if self.whole else "WordNet excerpt"


def wordnet(folder: Path | None, scratch: Path) -> WordNet:
    """From the folder with the four files that `examples.wordnet.convert` writes, or named by OMNIGRAPH_WORDNET.

    Raises FileNotFoundError if a folder is named that lacks one of them.
    """
    if folder is None and os.environ.get(VARIABLE):
        folder = Path(os.environ[VARIABLE])
    if folder is None:
        return WordNet(_EXCERPT, whole=False)
    joined = scratch / "wordnet.jsonl.gz"
    with joined.open("wb") as out:
        for name in FILES:  # a gzip file may have several members, one after another
            with (folder / name).open("rb") as part:
                shutil.copyfileobj(part, out)
    return WordNet(joined, whole=True)


WITHOUT = (
    "All WordNet was not there (name its folder by `make bench DATA=…` or OMNIGRAPH_WORDNET): these numbers are of the small excerpt "
    "in `examples/wordnet`, where fixed costs weigh more, and say nothing about the targets."
)
