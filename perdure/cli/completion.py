"""Completion of ids and names in a shell: quick, and silent where there is nothing to complete.

Every help imports this module: what it needs is imported when a word is completed.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from perdure.cli.catalogs.catalog import Catalog

Candidates: TypeAlias = list[tuple[str, str]]
"""What a word may become, each with a help."""

MAX_CONVERSATIONS = 50
"""The newest conversations, which are completed whatever there are."""

MAX_SECONDS = 1.5
"""Seconds that a shell waits at most."""

SHELL_SYNTAX = "$`\\\"'"
"""Characters left out of titles, which others have written."""


def complete_ids(incomplete: str) -> Candidates:
    return _complete(incomplete, _list_conversations)


def complete_batches(incomplete: str) -> Candidates:
    return _complete(incomplete, _list_batches)


def complete_names(incomplete: str) -> Candidates:
    """Complete the ids of conversations and the names of batches."""
    return [*complete_ids(incomplete), *complete_batches(incomplete)]


def complete_models(incomplete: str) -> Candidates:
    """Complete the names of the models of the newest conversations."""
    return _complete(incomplete, _list_models)


def complete_agents(incomplete: str) -> Candidates:
    """Complete the names of the agents on this machine."""
    from perdure.client.agents.files import list_names
    from perdure.client.agents.sources import default_folders
    from perdure.errors import PerdureError
    from perdure.settings.settings import load_settings

    try:
        tables = load_settings().agents
        names = {*tables, *(it for folder in default_folders() for it in list_names(folder))}
    except (OSError, PerdureError):  # a shell would show it in the line that is typed
        return []
    return [(name, "") for name in sorted(names) if name.startswith(incomplete)]


def _complete(
    incomplete: str, list_names: "Callable[[Catalog, str], Awaitable[Candidates]]"
) -> Candidates:
    """Return what begins with the word; nothing where nobody answers in time.

    A shell would show any error in the middle of the line that is typed.
    """
    import asyncio

    async def find() -> Candidates:
        from perdure.cli.environment import close_gateways, open_catalog

        try:
            async with asyncio.timeout(MAX_SECONDS):
                return await list_names(await open_catalog(), incomplete)
        finally:
            await close_gateways()

    try:
        return [item for item in asyncio.run(find()) if item[0].startswith(incomplete)]
    except Exception:
        return []


async def _list_conversations(catalog: "Catalog", incomplete: str) -> Candidates:
    return [
        (summary.id, _one_line(f"{summary.title or ''} ({summary.status})"))
        for summary in await _summarize_newest(catalog, incomplete)
    ]


async def _list_batches(catalog: "Catalog", _: str) -> Candidates:
    return [(name, "batch") for name in await catalog.list_batches()]


async def _list_models(catalog: "Catalog", _: str) -> Candidates:
    models = [summary.model for summary in await _summarize_newest(catalog, "")]
    return [(name, "") for name in dict.fromkeys(models) if name]


async def _summarize_newest(catalog: "Catalog", incomplete: str) -> list[Any]:
    newest: list[Any] = []
    async for summary in catalog.walk(lambda id: id.startswith(incomplete), MAX_CONVERSATIONS):
        newest.append(summary)
        if len(newest) == MAX_CONVERSATIONS:
            break
    return newest


def _one_line(text: str) -> str:
    """Join the printable words of a text, without what a shell might evaluate."""
    safe = (char if char.isprintable() and char not in SHELL_SYNTAX else " " for char in text)
    line = " ".join("".join(safe).split())
    return line if len(line) <= 60 else f"{line[:59]}…"
