"""`perdure model`: serve scripted models, which need no key."""

import asyncio
from pathlib import Path

from perdure.cli.options import Format
from perdure.cli.output import note, show, show_json
from perdure.errors import Conflict
from perdure.testing.script import read_scripts
from perdure.testing.server import serve_scripts as serving


async def execute(script: Path, port: int, output: Format) -> None:
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
