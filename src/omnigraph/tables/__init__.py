"""What the graph is stored in: Lance tables. The only room that imports `lance`."""

import os

# Lance writes warnings about failed requests to stderr, storage paths included; a log of ours never holds one
# (storage.md 6). It reads the variable when it is first imported, which this module precedes. Set it to see more.
os.environ.setdefault("LANCE_LOG", "error")
