"""The slash commands that show something, and those that take it elsewhere."""

import json
from importlib.metadata import version
from pathlib import Path

from perdure.cli.chat.chat import Chat
from perdure.cli.chat.clipboard import copy_text
from perdure.cli.follow import find_workflow_page
from perdure.cli.output import note, open_output, show
from perdure.cli.rendering.chat import describe_action, output_lines
from perdure.cli.rendering.diffs import style_diff_line
from perdure.cli.rendering.events import describe_event
from perdure.cli.rendering.status_lines import status_lines
from perdure.client.file_changes import diff_files
from perdure.errors import Conflict, Invalid, NotFound
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.events.usage import Usage
from perdure.exports.format import Part
from perdure.exports.formats import find_format, list_format_names
from perdure.references import BadReference
from perdure.storage.log.exporting import export as export_log
from perdure.storage.log.exporting import export_metadata
from perdure.storage.log.state import last_agent_text


async def status(chat: Chat, _: str) -> None:
    """Show the status of the conversation."""
    conversation = chat.require_begun()
    for line in status_lines(await conversation.status(), conversation.log.user_id):
        show(f"  {line}")
    show(f"  {'id':<12} {conversation.id}")
    if chat.workspace is not None:
        show(f"  {'workspace':<12} {chat.workspace}")
    if (page := find_workflow_page(conversation, chat.environment)) is not None:
        show(f"  {'Temporal':<12} {page}")


async def cost(chat: Chat, _: str) -> None:
    """Show the tokens and the cost, by model."""
    chat.require_begun()
    for model, usage in chat.state.usage_by_model.items():
        show(f"  {model:<40} {_describe_usage(usage)}")
    show(f"  {'all':<40} {_describe_usage(chat.state.usage)}")


def _describe_usage(usage: Usage) -> str:
    counts = f"{usage.prompt_tokens:>10,} in {usage.completion_tokens:>8,} out"
    return f"{counts}   {describe_cost(usage)}"


def describe_cost(usage: Usage) -> str:
    """Describe the US dollars; they are unknown for a model that has no price."""
    if usage.cost:
        return f"${usage.cost:.4f}"
    return "cost unknown" if usage.prompt_tokens or usage.completion_tokens else "$0"


async def tools(chat: Chat, _: str) -> None:
    """Show the agent's tools and MCP servers."""
    if chat.state.prompt_seq is None:
        for name in chat.agent.tools if chat.agent else ():
            show(f"  {name}")
    else:
        prompt = (await chat.conversation.log.get(chat.state.prompt_seq)).event
        assert isinstance(prompt, SystemPromptEvent), "the slot of a prompt holds one"
        for tool in prompt.tools:
            show(f"  {tool.name:<20} {tool.description.strip().partition(chr(10))[0]}")
    for server in chat.agent.mcp if chat.agent else ():
        place = server.url or " ".join([server.command or "", *server.args])
        show(f"  MCP server {server.name}: {place}")


async def show_event(chat: Chat, text: str) -> None:
    """Show an event in full; by default, the last folded."""
    conversation = chat.require_begun()
    seq = chat.printer.folded_seq if not text else int(text) if text.isdecimal() else None
    if seq is None and text:
        raise Invalid(f"{text!r} is no seq: /show 12 shows the event of seq 12.")
    if seq is None:
        raise NotFound("No result was folded: /show SEQ shows any event.")
    entry = await conversation.log.find(seq)
    if entry is None:
        raise NotFound(f"There is no seq {seq}: the last one is {chat.state.next_seq - 1}.")
    show(_render_whole(entry))


def _render_whole(entry: Entry) -> str:
    match entry.event:
        case MessageEvent() as event:
            return join_text(event.llm_message.content)
        case ActionEvent() as event:
            return describe_action(event)
        case ObservationEvent() | AgentErrorEvent() | UserRejectObservation() as event:
            return "\n".join(output_lines(event))
        case SystemPromptEvent() as event:
            return event.system_prompt.text
        case event:
            fields = json.loads(entry.body)
            return f"{describe_event(event)[1]}\n{json.dumps(fields, indent=2, ensure_ascii=False)}"


async def diff(chat: Chat, since: str) -> None:
    """Show all changed files, or those of the last turn."""
    conversation = chat.require_begun()
    if since not in ("", "last"):
        raise Invalid("Write /diff, or /diff last for what came of your last message.")
    after = max(-1, chat.state.last_user_seq - 1) if since else -1
    if not (text := await diff_files(conversation, after)):
        note("No file has changed.")
    for line in text.splitlines():
        show(style_diff_line(line, indent="  "))


async def copy(chat: Chat, _: str) -> None:
    """Copy the agent's last answer to the clipboard."""
    conversation = chat.require_begun()
    text = await last_agent_text(conversation.log, chat.state.next_seq)
    if not text:
        raise Conflict("The agent has not answered yet.")
    note(f"Copied {len(text):,} characters {copy_text(text)}.")


async def export(chat: Chat, text: str) -> None:
    """Export to a file: html, or another format."""
    log = chat.require_begun().log
    name, _, path = text.partition(" ")
    try:
        format = find_format(name or "html")
    except BadReference as error:
        raise Invalid(f"There is no format {name!r}: {', '.join(list_format_names())}.") from error
    target = Path(path.strip() or f"perdure-{log.conversation_id[:8]}{format.suffix}")
    parts: dict[Path, bytearray] = {}

    def take(part: Part) -> None:
        place = target if format.suffix else target / part.path
        parts.setdefault(place, bytearray()).extend(part.body)

    metadata = await export_metadata(log, chat.state, version("perdure"))
    await export_log(log, format, metadata, take)
    for place, body in parts.items():
        with open_output(str(place)) as file:
            file.write(body)
    note(f"Written to {target}." if parts else f"Nothing goes into {format.name}.")
