"""`perdure codec`: serve a codec that decrypts payloads for the Temporal UI."""

import asyncio

from perdure.cli.options import Format
from perdure.cli.output import note, show, show_json
from perdure.errors import Conflict, Invalid
from perdure.operations.codec_server import serve_codec
from perdure.settings.settings import load_settings
from perdure.temporal.codec import KEY_HINT, SETTING, build_encryption


async def execute(origins: list[str], host: str, port: int, output: Format) -> None:
    codec = build_encryption(load_settings().payload_keys)
    if codec is None:
        raise Invalid(f"{SETTING} is not set: nothing is encrypted.", KEY_HINT)
    try:
        async with serve_codec(codec, host, port, origins) as endpoint:
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
    allowed = f"pages of {', '.join(origins)}" if origins else "no page, but for an --origin"
    note(f"Decrypts there until ^C for `temporal --codec-endpoint {endpoint}`, and {allowed}.")
