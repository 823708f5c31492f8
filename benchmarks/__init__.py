"""What the design promises in numbers, measured: requests counted, and ratios of times taken side by side in one run.

    python -m benchmarks            everything, and docs/benchmarks.md written anew
    python -m benchmarks --quick    smaller sizes, printed only

One file a measurement. The S3 server and the counting proxy are those of the tests, so their folder is put on the path.
"""

import os
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent

os.environ.setdefault("LANCE_LOG", "error")  # before it is loaded: LanceDB has it warn at every search

if str(CHECKOUT / "tests") not in sys.path:
    sys.path.append(str(CHECKOUT / "tests"))
