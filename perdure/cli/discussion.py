"""Discussions in the terminal: start and watch them, take part, steer and export."""

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

from perdure.agent.discussion.named_agents import resolve_named_agents
from perdure.agent.discussion.spec import DiscussionSpec, parse_discussion
from perdure.agent.discussion.state import DiscussionStatus
from perdure.agent.discussion.status import describe_status
from perdure.agent.resolve import resolve_agent
from perdure.agent.spec import Agent
from perdure.cli.agent_sources import open_agent_sources
from perdure.cli.commands.export import find_format, write_log
from perdure.cli.declarations.discussions import (
    Discuss,
    DiscussionOptions,
    Export,
    List,
    Say,
    Status,
    Vote,
    Watch,
)
from perdure.cli.environment import (
    Environment,
    open_environment,
)
from perdure.cli.model_check import check_models
from perdure.cli.open_discussion import connect_discussions, open_discussion
from perdure.cli.options import Format
from perdure.cli.output import (
    escape_controls,
    note,
    open_output,
    show,
    show_json,
    show_parts,
    show_result,
)
from perdure.client.agents.paths import resolve_paths
from perdure.client.discussion.protocol import DiscussionControl
from perdure.errors import Invalid
from perdure.events.discussion import MODERATOR, SYSTEM, DiscussionEvent
from perdure.exports.discussion import write_lines, write_page
from perdure.models.budget import list_models
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.settings.settings import load_settings
from perdure.storage.keys import escape_name
from perdure.storage.shared import MAX_LISTED

SPEAKER_STYLES = ("cyan", "green", "magenta", "yellow", "blue", "red")

CONFIRMATIONS = {
    "pause": "It pauses after the step that runs. `perdure discussion resume` continues it.",
    "resume": "It resumes.",
    "close": "It ends; its log stays.",
}


async def discuss(options: Discuss) -> int:
    spec = await _build_spec(read_table(Path(options.spec)))
    if options.detach:
        handle = await (await connect_discussions()).start(spec, options.session)
        show_result({"session_id": handle.id}, options.output, handle.id)
        return EXIT_OK
    async with open_environment() as environment:
        return await environment.run_with_stack(_start_and_follow(spec, environment, options))


async def list_all(options: List) -> None:
    discussions = await connect_discussions()
    if options.shared:
        ids = [f"{it.owner}/{it.id}" for it in await discussions.list_shared(MAX_LISTED)]
    else:
        ids = await discussions.list_ids()
    if options.output is Format.jsonl:
        for session_id in ids:
            show_json({"session_id": session_id}, options.output)
        return
    show_result([{"session_id": session_id} for session_id in ids], options.output, *ids)


async def show_status(options: Status) -> None:
    handle = await _open(options)
    status = await handle.status()
    lines = [line.removeprefix("- ") for line in describe_status(status, None).splitlines()]
    spec = await handle.spec()
    conversations = {name: handle.conversation_id(name) for name in spec.speakers()}
    lines += [f"conversation of {name}: {its}" for name, its in conversations.items()]
    fields = {**_fields(status), "conversations": conversations}
    show_result(fields, options.output, *(line.replace("**", "") for line in lines))


async def watch(options: Watch) -> int:
    return await _follow(await _open(options), options.output, options.after)


async def say(options: Say) -> None:
    handle = await _open(options)
    place = await handle.say(options.text, options.speaker)
    show_result({"sequence": place}, options.output, remark=f"It is event {place} of the log.")


async def vote(options: Vote) -> None:
    handle = await _open(options)
    place = await handle.vote(options.ballot, options.speaker, options.reason)
    show_result({"sequence": place}, options.output, remark=f"It is event {place} of the log.")


async def steer(options: DiscussionOptions) -> None:
    name = type(options).__name__.lower()
    await getattr(await _open(options), name)()
    show_result({"session_id": options.session}, options.output, remark=CONFIRMATIONS[name])


async def export(options: Export) -> int:
    handle = await _open(options)
    spec = await handle.spec()
    if options.format == "results":
        return await _export_messages(handle, spec, options.path)
    events = [event async for event in handle.stored_events()]
    if options.format == "events":
        pieces = write_lines(events)
    elif options.format == "html":
        pieces = write_page(handle.id, spec.topic, events)
    else:
        raise Invalid(
            f"There is no format {options.format!r} of discussions.", "Use events, html or results."
        )
    with open_output(options.path) as file:
        for piece in pieces:
            file.write(piece)
    return EXIT_OK


async def _export_messages(handle: DiscussionControl, spec: DiscussionSpec, path: str) -> int:
    """Write the messages of each agent's conversation into a folder; return the exit code."""
    if path == "-":
        raise Invalid("results is a folder.", "Say which: --output FOLDER.")
    successes = []
    for name in spec.speakers():
        log = handle.open_log(name)
        if await log.exists():
            with open_output(str(Path(path) / f"{escape_name(name)}.json")) as file:
                successes.append(await write_log(file, log, find_format("results")))
    return EXIT_OK if all(successes) else EXIT_FAILED


def read_table(path: Path) -> dict[str, Any]:
    """Read the table of a spec; its paths begin at its folder. Raises Invalid."""
    try:
        text = path.read_text(encoding="utf-8")
        fields = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise Invalid(f"{path} cannot be read ({error.strerror or error}).") from error
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{path} is not valid: {error}.") from error
    if not isinstance(fields, dict):
        raise Invalid(f"{path} is no table.")
    folder = path.absolute().parent
    for name in ("agent", "moderator"):
        if isinstance(fields.get(name), dict):
            fields[name] = resolve_paths(fields[name], folder)
    if isinstance(fields.get("agents"), list):
        fields["agents"] = [
            resolve_paths(table, folder) if isinstance(table, dict) else table
            for table in fields["agents"]
        ]
    return fields


async def _build_spec(table: dict[str, Any]) -> DiscussionSpec | dict[str, Any]:
    """Return the spec of a table, whose agents may be named; a gateway knows its own by name.

    Raises Invalid.
    """
    if load_settings().gateway is not None:
        return table
    return parse_discussion(await resolve_named_agents(table, _find_agent))


async def _find_agent(name: str) -> Agent:
    async with open_agent_sources() as sources:
        return resolve_agent(name, (), await sources.load_offer(name, ())).agent


async def _start_and_follow(
    spec: DiscussionSpec | dict[str, Any], environment: Environment, options: Discuss
) -> int:
    for agent in spec.all_agents() if isinstance(spec, DiscussionSpec) else ():
        await check_models(list_models(agent), environment.settings)
    discussions = await connect_discussions(environment.settings)
    handle = await discussions.start(spec, options.session)
    if options.output is Format.text:
        note(f"discussion {handle.id}")
    return await _follow(handle, options.output)


async def _follow(handle: DiscussionControl, output: Format, after: int = 0) -> int:
    """Show the events until the discussion is over; return the exit code."""
    styles: dict[str, str] = {}
    try:
        async for event in handle.events(after):
            if output is Format.jsonl:
                show_json(event.to_json(), output)
            elif output is Format.text:
                _show_event(event, styles)
        status = await handle.result()
    except asyncio.CancelledError:
        note(f"It goes on: `perdure discussion watch {handle.id}` shows it again.")
        raise
    if output is Format.json:
        show_json(_fields(status), output)
    if status.status == "failed":
        note(f"perdure: The discussion failed: {status.reason}", "red")
        return EXIT_FAILED
    if output is Format.text and status.tally is not None:
        counts = ", ".join(f"{name} {number}" for name, number in status.tally.counts.items())
        show(f"vote: {counts}; winner: {status.tally.winner or 'none'}")
    return EXIT_OK


def _show_event(event: DiscussionEvent, styles: dict[str, str]) -> None:
    """Print an event for people: speeches and summaries whole, all else on one line."""
    if event.speaker in (SYSTEM, MODERATOR):
        style = "bold" if event.type == "SUMMARY" else "dim"
    else:
        style = styles.setdefault(event.speaker, SPEAKER_STYLES[len(styles) % len(SPEAKER_STYLES)])
    head = f"{event.sequence:>4}  {event.speaker}"
    if event.type in ("SPEECH", "SUMMARY"):
        label = "" if event.type == "SPEECH" else " sums up"
        show_parts((escape_controls(f"{head}{label}: "), style), (escape_controls(event.text), ""))
        return
    show_parts((escape_controls(f"{head}  {event.type.lower()}  "), style), (_short(event), "dim"))


def _short(event: DiscussionEvent) -> str:
    if event.action is None:
        content = event.content if isinstance(event.content, dict) else {}
        parts = [f"{key}: {value}" for key, value in content.items()] or [event.text]
    else:
        parts = [event.action, *(f"{key}: {value}" for key, value in event.details.items())]
    return escape_controls(", ".join(map(str, parts)))


def _fields(status: DiscussionStatus) -> dict[str, Any]:
    return status.model_dump(mode="json", exclude_none=True)


async def _open(options: DiscussionOptions | Export) -> DiscussionControl:
    return await open_discussion(options.session)
