"""The work of each command, imported when the command is used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.cli.commands import answer as answer
    from perdure.cli.commands import ask as ask
    from perdure.cli.commands import chat as chat
    from perdure.cli.commands import codec as codec
    from perdure.cli.commands import configure as configure
    from perdure.cli.commands import control as control
    from perdure.cli.commands import deploy as deploy
    from perdure.cli.commands import dev as dev
    from perdure.cli.commands import doctor as doctor
    from perdure.cli.commands import export as export
    from perdure.cli.commands import fork as fork
    from perdure.cli.commands import ls as ls
    from perdure.cli.commands import model as model
    from perdure.cli.commands import note as note
    from perdure.cli.commands import purge as purge
    from perdure.cli.commands import reopen as reopen
    from perdure.cli.commands import replay as replay
    from perdure.cli.commands import run as run
    from perdure.cli.commands import send as send
    from perdure.cli.commands import setup as setup
    from perdure.cli.commands import show as show
    from perdure.cli.commands import status as status
    from perdure.cli.commands import verify as verify
    from perdure.cli.commands import watch as watch
    from perdure.cli.commands import worker as worker


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return import_module(f"{__name__}.{name}")
