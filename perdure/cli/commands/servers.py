"""Commands that serve over HTTP until ^C: a codec for the Temporal UI, and scripted models."""

import asyncio
from urllib.parse import urlsplit

from perdure.cli.declarations import operations
from perdure.cli.output import show_result
from perdure.errors import Conflict, Invalid
from perdure.operations import codec_server
from perdure.settings.settings import load_settings
from perdure.storage.credentials.key_ring import make_hint
from perdure.temporal.codec import SETTING, build_encryption
from perdure.testing.script import read_scripts
from perdure.testing.server import serve_scripts


async def serve_codec(options: operations.ServeCodec) -> None:
    host, port, origins = options.host, options.port, options.origin or []
    for origin in origins:
        _check_origin(origin)
    codec = build_encryption(load_settings().payload_keys)
    if codec is None:
        raise Invalid(f"{SETTING} is not set: nothing is encrypted.", make_hint(SETTING))
    allowed = f"pages of {', '.join(origins)}" if origins else "no page, but for an --origin"
    try:
        async with codec_server.serve_codec(codec, host, port, origins) as endpoint:
            client = f"`temporal --codec-endpoint {endpoint}`"
            remark = f"Decrypts there until ^C for {client}, and {allowed}."
            fields = {"endpoint": endpoint, "origins": origins}
            show_result(fields, options.output, endpoint, remark=remark)
            await asyncio.Event().wait()
    except OSError as error:
        reason = error.strerror or error
        raise Conflict(f"{host}:{port} cannot be had: {reason}.", "Name another.") from error


def _check_origin(origin: str) -> None:
    """Raises Invalid for what no browser sends as the origin of a page."""
    url = urlsplit(origin)
    is_whole = origin == f"{url.scheme}://{url.netloc}" and url.hostname is not None
    if not is_whole or url.scheme not in ("http", "https"):
        hint = "Write it as http://HOST:PORT or https://HOST, without a path."
        raise Invalid(f"{origin!r} is not the origin of a page.", hint)


async def serve_model(options: operations.ServeModel) -> None:
    scripts = read_scripts(options.script)
    try:
        async with serve_scripts(scripts, port=options.port) as base_url:
            commands = [
                f'perdure run "..." --model openai/{name} --api-base {base_url}' for name in scripts
            ]
            remark = "\n".join(["Serves until ^C. To use it, with no key:", *commands])
            fields = {"base_url": base_url, "models": list(scripts), "commands": commands}
            show_result(fields, options.output, base_url, remark=remark)
            await asyncio.Event().wait()
    except OSError as error:
        message = f"Port {options.port} cannot be had: {error.strerror}."
        raise Conflict(message, "Name another.") from error
