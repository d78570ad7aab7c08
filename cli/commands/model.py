"""`perdure model`: models that need no key."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from cli.output import Format, Output, note, show, show_json
from cli.performing import command_app, perform
from client.errors import Conflict
from models.script import read_scripts
from models.serve import serve as serving

app = command_app()


@app.callback()
def model() -> None:
    """Serve a scripted model over HTTP."""


@app.command()
def serve(
    script: Annotated[
        Path, typer.Argument(metavar="SCRIPT", help="A .json or .toml file of answers.")
    ],
    port: Annotated[int, typer.Option(help="0 means a free one.", min=0, max=65535)] = 0,
    output: Output = Format.text,
) -> None:
    """Answer as an OpenAI-compatible server from a script, until ^C."""
    perform(_serve(script, port, output), output)


async def _serve(script: Path, port: int, output: Format) -> None:
    scripts = read_scripts(script)
    try:
        async with serving(scripts, port=port) as base_url:
            _announce(base_url, list(scripts), output)
            await asyncio.Event().wait()
    except OSError as error:
        raise Conflict(f"Port {port} cannot be had: {error.strerror}.", "Name another.") from error


def _announce(base_url: str, names: list[str], output: Format) -> None:
    if output is not Format.text:
        show_json({"base_url": base_url, "models": names}, output)
        return
    show(base_url)
    note(f"Serves {', '.join(names)} there until ^C; any key will do.")
