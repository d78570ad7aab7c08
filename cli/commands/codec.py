"""`perdure codec`: what Temporal keeps encrypted, legible in its UI."""

import asyncio
from typing import Annotated

import typer

from cli.output import Format, Output, note, show, show_json
from cli.performing import command_app, perform
from client.codec import MAKE, SETTING, encryption_of
from client.codec_server import serving
from client.errors import Conflict, Invalid
from settings.settings import load

app = command_app()


@app.callback()
def codec() -> None:
    """Decrypt payloads for the Temporal UI."""


@app.command()
def serve(
    origin: Annotated[
        list[str] | None,
        typer.Option(help="A Temporal UI whose page may ask, as http://HOST:PORT; repeatable."),
    ] = None,
    port: Annotated[int, typer.Option(help="0 means a free one.", min=0, max=65535)] = 0,
    host: Annotated[
        str, typer.Option(help="Where to listen. Nobody is asked for a password.")
    ] = "127.0.0.1",
    output: Output = Format.text,
) -> None:
    """Encrypt and decrypt payloads for the Temporal UI and the `temporal` command, until ^C.

    Uses PERDURE_PAYLOAD_KEYS. Whoever reaches it can read what was encrypted.
    """
    perform(_serve(origin or [], host, port, output), output)


async def _serve(origins: list[str], host: str, port: int, output: Format) -> None:
    codec = encryption_of(load().payload_keys)
    if codec is None:
        raise Invalid(f"{SETTING} is not set: nothing is encrypted.", MAKE)
    try:
        async with serving(codec, host, port, origins) as endpoint:
            _announce(endpoint, origins, output)
            await asyncio.Event().wait()
    except OSError as error:
        reason = error.strerror or error
        raise Conflict(f"{host}:{port} cannot be had: {reason}.", "Name another.") from error


def _announce(endpoint: str, origins: list[str], output: Format) -> None:
    if output is not Format.text:
        show_json({"endpoint": endpoint, "origins": origins}, output)
        return
    show(endpoint)
    asking = f"pages of {', '.join(origins)}" if origins else "no page, but for an --origin"
    note(f"Decrypts there until ^C for `temporal --codec-endpoint {endpoint}`, and {asking}.")
