"""`omnigraph version`: what this program is, and which contracts it speaks."""

from __future__ import annotations

from omnigraph._version import __version__
from omnigraph.cli.command import command
from omnigraph.cli.output import emit_json, emit_text
from omnigraph.cli.session import Session

HTTP_CONTRACT = "1"


@command("version", takes="local")
def version(session: Session) -> None:
    """Program, storage format, HTTP contract and Lance version."""
    session.refuse_addressing()
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    from omnigraph.manifest.codec import FORMAT

    try:
        lance = installed("pylance")
    except PackageNotFoundError:
        lance = "none"
    answer = {
        "version": __version__,
        "internal_schema_version": FORMAT,
        "http_api": HTTP_CONTRACT,
        "lance_version": lance,
    }
    if session.json:
        emit_json(answer)
    else:
        emit_text(f"omnigraph {__version__}\nstorage format {FORMAT}\nHTTP contract {HTTP_CONTRACT}\nLance {lance}")
