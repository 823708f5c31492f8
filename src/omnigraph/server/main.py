"""`omnigraph-server`: read the settings, run the process, give its exit code.

Exit codes: 0 after a clean stop; 1 for bad settings or a refused boot, with the reason on stderr; 2 if admitted work had
not ended when the grace was over, or at a second signal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from omnigraph.engine.environment import ProcessSettings
from omnigraph.engine.logs import log_event
from omnigraph.errors import OmnigraphError
from omnigraph.server.boot import Refused, applied_root, owning
from omnigraph.server.logs import Lines, configure_logs
from omnigraph.server.options import BadOptions, Options, read_options
from omnigraph.server.shutdown import Shutdown

REFUSED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until it is told to stop; the exit code. To be called in the main thread of a process."""
    try:
        options = read_options(arguments, os.environ)
        configure_logs(options.log_format, options.log_level)
        return _run(options, Shutdown(options.grace_seconds))
    except (BadOptions, Refused) as error:
        return _refused(str(error))
    except OmnigraphError as error:
        return _refused(f"{error.code}: {error.message}")


def _run(options: Options, shutdown: Shutdown) -> int:
    for variable in options.unknown_variables:
        log_event("omnigraph.server", "warning", "variable not known", variable=variable)
    ProcessSettings.from_environment()  # refused now, and not by each graph
    storage = applied_root(options.cluster)
    if options.check:
        from omnigraph.server.process import check  # loads the engine

        return check(storage)
    with owning(storage, options) as owned:
        from omnigraph.server.process import serve  # loads the engine, which a refused start does not need

        return serve(options, owned, shutdown)


def _refused(reason: str) -> int:
    Lines(sys.stderr).msg(f"omnigraph-server: {reason}")
    return REFUSED


if __name__ == "__main__":
    sys.exit(main())
