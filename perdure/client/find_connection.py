"""The servers of a program that connects: the configured ones, or those of `perdure dev`."""

import sys
from pathlib import Path

from perdure.client.discovery import NoServers
from perdure.client.store import open_configured_store
from perdure.embedded.discovery import await_stack
from perdure.embedded.record import open_stack_store
from perdure.settings.settings import Settings, load_settings
from perdure.storage.open import open_store_for_reading
from perdure.storage.store import Store


def find_gateway(settings: Settings | None) -> Settings | None:
    """Return the settings, by default those of the environment, if they name a gateway."""
    settings = settings or load_settings()
    return settings if settings.gateway is not None else None


async def find_connection(settings: Settings | None) -> tuple[Settings, Store, str | None]:
    """Return settings, the store, and the address of Temporal where it is that of `perdure dev`.

    Given settings are used as they are; others are those of the environment, or of a stack that
    runs in the data folder if no store is set. Raises Unreachable, Invalid.
    """
    explicit, settings = settings is not None, settings or load_settings()
    if explicit or settings.store is not None:
        return settings, open_configured_store(settings, open_store_for_reading), None
    stack = await await_stack(settings.data)
    if stack is None:
        raise NoServers(settings.data)
    code = settings.code or _program_folder()
    settings = settings.model_copy(update={"store": stack.store_url, "code": code})
    return settings, open_stack_store(stack), stack.temporal


def _program_folder() -> Path:
    """Return the folder of the script that runs; the current one in a notebook or by `-m`."""
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None) if main.__spec__ is None else None
    if script is None or Path(script).absolute().is_relative_to(sys.prefix):  # as of uvicorn
        return Path.cwd()
    return Path(script).absolute().parent
