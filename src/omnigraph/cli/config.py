"""`omnigraph config`: where the operator's configuration is and what it says."""

from __future__ import annotations

from omnigraph.cli.command import command, group
from omnigraph.cli.operator_config import config_path
from omnigraph.cli.output import emit_json, emit_text
from omnigraph.cli.session import Session

config = group("config", "The operator's configuration file.")


@command("path", takes="local")
def path(session: Session) -> None:
    """Where the file is looked for; OMNIGRAPH_HOME moves the folder."""
    session.refuse_addressing()
    place = config_path(session.environ)
    if session.json:
        emit_json({"path": str(place), "exists": place.is_file()})
    else:
        emit_text(str(place))


@command("show", takes="local")
def show(session: Session) -> None:
    """What it says, as YAML, with the standing values filled in."""
    session.refuse_addressing()
    answer = session.config.to_dict()
    if session.json:
        emit_json(answer)
        return
    from yaml import safe_dump  # pyright: ignore[reportUnknownVariableType] - its stub leaves a width open

    shown = {key: value for key, value in answer.items() if key != "path"}
    emit_text(f"# {answer['path']}\n{safe_dump(shown, sort_keys=False, allow_unicode=True)}".rstrip("\n"))


for _each in (path, show):
    config.add_command(_each)
