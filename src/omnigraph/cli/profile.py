"""`omnigraph profile`: the profiles of the operator's configuration."""

from __future__ import annotations

import click

from omnigraph.cli import options
from omnigraph.cli.command import command, group
from omnigraph.cli.errors import UsageRefused
from omnigraph.cli.forms import Listing
from omnigraph.cli.output import emit_json, emit_listing, emit_text
from omnigraph.cli.session import Session

profile = group("profile", "Profiles of the configuration.")

_SHOWN = ("name", "store", "cluster", "server", "default_graph", "branch", "output")


@command("list", takes="local")
@options.list_format
def list_(session: Session, output: str | None) -> None:
    """All profiles and what they name."""
    session.refuse_addressing()
    rows = [{"name": name, **place.to_dict()} for name, place in sorted(session.config.profiles.items())]
    shown = [name for name in _SHOWN if any(name in row for row in rows)]
    emit_listing(Listing({"profiles": rows}, rows, shown), session.form(output))


@command("show", takes="local")
@click.argument("name", required=False)
def show(session: Session, name: str | None) -> None:
    """One profile: NAME, else the one of OMNIGRAPH_PROFILE."""
    session.refuse_addressing()
    name = name or session.environ.get("OMNIGRAPH_PROFILE")
    place = session.config.profiles.get(name or "")
    if place is None:
        known = ", ".join(sorted(session.config.profiles)) or "none"
        raise UsageRefused(f"Name a profile; the configuration has {known}.")
    fields = {"name": name, **place.to_dict()}
    if session.json:
        emit_json(fields)
    else:
        emit_text("\n".join(f"{key}: {value}" for key, value in fields.items()))


for _each in (list_, show):
    profile.add_command(_each)
