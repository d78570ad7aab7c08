"""Discussions as the API starts, shows and exports them."""

import asyncio
import zipfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from importlib.metadata import version
from tempfile import TemporaryFile
from typing import IO, Any

from fastapi import Response
from fastapi.responses import StreamingResponse

from perdure.agent.discussion.named_agents import resolve_named_agents
from perdure.agent.discussion.spec import DiscussionSpec, parse_discussion
from perdure.agent.discussion.state import DiscussionStatus
from perdure.agent.spec import Agent
from perdure.api.discussions import Discussion
from perdure.client.access import find_access
from perdure.client.discussion.handle import DiscussionHandle
from perdure.errors import Conflict, Invalid, NotFound, TimedOut, Unreachable
from perdure.exports.discussion import write_lines, write_page
from perdure.exports.format import Format, Part
from perdure.gateway.agents.catalog import AgentCatalog, AgentUser
from perdure.gateway.views.downloads import (
    MEDIA_TYPES,
    download_headers,
    find_named_format,
    read_and_close,
)
from perdure.storage.errors import Altered
from perdure.storage.keys import escape_name
from perdure.storage.log.exporting import export, export_metadata
from perdure.storage.log.state import read_state_until_damage

PARALLEL_READS = 8

STATUS_WAIT = 3.0
"""Seconds for a workflow to say its status; then its log does."""

FORMATS = {"events": ".jsonl", "html": ".html", "results": ".zip"}
"""The formats of an export, and how their files' names end."""


async def parse_request(
    table: Mapping[str, Any], catalog: AgentCatalog, user: AgentUser
) -> DiscussionSpec:
    """Parse the spec of a request, whose agents may be named. Raises Invalid."""
    named: list[Agent] = []

    async def find(name: str) -> Agent:
        named.append(await catalog.choose(user, name, None))
        return named[-1]

    spec = parse_discussion(await resolve_named_agents(table, find))
    for agent in spec.all_agents():
        _check_agent(agent, named, catalog)
    return spec


def _check_agent(agent: Agent, named: Iterable[Agent], catalog: AgentCatalog) -> None:
    """Check an agent, which may have what an agent has that was named. Raises Invalid."""
    for offered in named:
        try:
            catalog.policy.check(agent, offered)
        except Invalid:
            continue
        return
    catalog.policy.check(agent)


async def show_discussion(handle: DiscussionHandle) -> Discussion:
    """Describe a discussion with its status. Raises NotFound and StoreError."""
    spec = await handle.spec()
    return Discussion(
        id=handle.id,
        topic=spec.topic,
        agents=tuple(agent.id for agent in spec.agents),
        phases=tuple(phase.name for phase in spec.phases),
        status=await load_status(handle),
        conversations={name: handle.conversation_id(name) for name in spec.speakers()},
        owner=handle.owner,
        access=await find_access(handle.store),
        attached=handle.attached,
    )


async def load_status(handle: DiscussionHandle) -> DiscussionStatus:
    """Load the status from the workflow, or as the log has it. Raises NotFound, StoreError."""
    try:
        return await handle.status(STATUS_WAIT)
    except (TimedOut, Unreachable) as error:
        status = await handle.logged_status()
        return status.model_copy(update={"reason": str(error)})
    except Conflict as error:  # Temporal has forgotten the workflow
        status = await handle.logged_status()
        if status.status in ("finished", "closed"):
            return status
        return status.model_copy(update={"status": "failed", "reason": str(error)})


async def show_all(handles: Iterable[DiscussionHandle]) -> list[Discussion]:
    """Describe discussions, also damaged ones; those that are gone meanwhile are left out."""
    turns = asyncio.Semaphore(PARALLEL_READS)

    async def show(handle: DiscussionHandle) -> Discussion | None:
        async with turns:
            try:
                return await show_discussion(handle)
            except NotFound:
                return None
            except Altered as error:
                return await _describe_damaged(handle, str(error))

    return [it for it in await asyncio.gather(*map(show, handles)) if it is not None]


async def _describe_damaged(handle: DiscussionHandle, reason: str) -> Discussion:
    status = DiscussionStatus(session_id=handle.id, status="failed", reason=reason)
    access = await find_access(handle.store)
    return Discussion(
        id=handle.id,
        topic="",
        agents=(),
        phases=(),
        status=status,
        owner=handle.owner,
        access=access,
    )


async def export_discussion(handle: DiscussionHandle, name: str) -> Response:
    """Export a discussion, also pruned events; `results` is a zip archive.

    Raises Invalid for another format, NotFound and StoreError.
    """
    if name not in FORMATS:
        message = f"There is no format {name!r} of discussions."
        raise Invalid(message, f"Use {', '.join(FORMATS)}.")
    spec, suffix = await handle.spec(), FORMATS[name]
    file: IO[bytes] = TemporaryFile()  # noqa: SIM115 - the answer closes it
    try:
        if name == "results":
            await _write_messages(file, handle, spec)
        else:
            events = [event async for event in handle.stored_events()]
            pieces: Iterator[bytes] = (
                write_lines(events)
                if name == "events"
                else write_page(handle.id, spec.topic, events)
            )
            await asyncio.to_thread(file.writelines, pieces)
    except BaseException:
        file.close()
        raise
    headers = download_headers(f"{handle.id}{suffix}")
    headers["Content-Length"] = str(file.seek(0, 2))
    media_type = MEDIA_TYPES.get(suffix, "application/zip")
    return StreamingResponse(read_and_close(file), headers=headers, media_type=media_type)


async def _write_messages(file: IO[bytes], handle: DiscussionHandle, spec: DiscussionSpec) -> None:
    """Write a zip archive with the messages of each agent's conversation."""
    made = find_named_format("results")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        async for name, body in _export_messages(handle, spec, made):
            archive.writestr(f"{escape_name(name)}.json", body)


async def _export_messages(
    handle: DiscussionHandle, spec: DiscussionSpec, made: Format
) -> AsyncIterator[tuple[str, bytes]]:
    for name in spec.speakers():
        log = handle.open_log(name)
        if not await log.exists():
            continue
        state, _ = await read_state_until_damage(log)
        about = await export_metadata(log, state, version("perdure"))
        parts: list[Part] = []
        await export(log, made, about, parts.append)
        yield name, b"".join(part.body for part in parts)
