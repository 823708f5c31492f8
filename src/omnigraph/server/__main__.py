"""`python -m omnigraph.server`."""

import sys

from omnigraph.server.main import main

if __name__ == "__main__":
    sys.exit(main())
