"""`omnigraph-server`: read the settings, run the process, give its exit code.

Exit codes: 0 after a clean stop; 1 for bad settings or a refused boot, with the reason on stderr; 2 if admitted work had
not ended when the grace was over, or at a second signal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from omnigraph.errors import OmnigraphError
from omnigraph.server.logs import configure_logs
from omnigraph.server.options import BadOptions, read_options

REFUSED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until it is told to stop; the exit code. To be called in the main thread of a process."""
    try:
        options = read_options(arguments, os.environ)
        configure_logs(options.log_format, options.log_level)
        from omnigraph.server.process import Refused, serve  # loads the engine, which help and refusals don't need

        try:
            return serve(options)
        except Refused as error:
            return _refused(str(error))
    except BadOptions as error:
        return _refused(str(error))
    except OmnigraphError as error:
        return _refused(f"{error.code}: {error.message}")


def _refused(reason: str) -> int:
    sys.stderr.write(f"omnigraph-server: {reason}\n")
    return REFUSED


if __name__ == "__main__":
    sys.exit(main())
