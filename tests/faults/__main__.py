"""`python -m faults`: see `at_length`, which is a module of its own so that the processes it starts can import it."""

import sys

from faults.at_length import main

if __name__ == "__main__":
    sys.exit(main())
