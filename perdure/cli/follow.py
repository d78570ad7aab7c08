"""Display of a conversation: where to find it, its events up to the end of a turn, its status."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perdure.agent.loop.start import ConversationStatus, PendingCall, build_status
from perdure.agent.loop.state import State, actions_to_confirm
from perdure.cli.environment import Environment
from perdure.cli.options import Format
from perdure.cli.output import note, show_json, show_result
from perdure.cli.rendering.events import describe_call, shorten, show_slot
from perdure.cli.rendering.live_region import run_beside, show_live_steps
from perdure.client.conversation import Conversation
from perdure.errors import TimedOut
from perdure.events.entry import Entry
from perdure.events.tools import ActionEvent
from perdure.events.usage import Usage
from perdure.operations.error_reports import EXIT_CONFLICT, EXIT_FAILED, EXIT_OK
from perdure.storage.errors import StoreUnavailable
from perdure.storage.keys import conversation_prefix

TROUBLE_CHECK_INTERVAL = 2.0
"""Seconds between two checks of whether the conversation goes on."""


async def follow(
    conversation: Conversation,
    message_id: str | None,
    after: int,
    output: Format,
    limit: float | None = None,
    show_event: Callable[[Entry], None] | None = None,
) -> State:
    """Show the events after slot `after` until the turn that the message began is over.

    `show_event` replaces the usual printing. Raises TimedOut after `limit` seconds, and what
    `Conversation.finished` raises.
    """

    end = asyncio.ensure_future(conversation.wait_for_turn(message_id, after))

    async def is_over() -> bool:
        return end.done()

    try:
        async with (
            asyncio.timeout(limit),
            show_live_steps(conversation.watch_running_steps(), output) as finish_step,
            run_beside(note_trouble(conversation)),
        ):
            async for entry in conversation.log.tail(after, is_idle=is_over):
                finish_step(entry)
                if show_event is not None:
                    show_event(entry)
                elif output is not Format.json:
                    show_slot(entry, output)
            return await end
    except TimeoutError as error:
        raise TimedOut(
            f"The turn was not over within {limit:g} s.",
            f"It goes on; `perdure watch {conversation.id}` shows it.",
        ) from error
    finally:
        end.cancel()


async def note_trouble(conversation: Conversation) -> None:
    """Note, until cancelled, why the conversation does not go on, and when it does again.

    Each reason is noted once.
    """
    last_cause: str | None = None
    while True:
        await asyncio.sleep(TROUBLE_CHECK_INTERVAL)
        trouble_now = await conversation.diagnose()
        if trouble_now is not None and trouble_now.cause != last_cause:
            note(trouble_now.sentence, "dim" if trouble_now.slow else "yellow")
        elif trouble_now is None and last_cause is not None:
            note("It goes on.")
        last_cause = trouble_now.cause if trouble_now else None


def print_result(conversation_id: str, state: State, output: Format, **fields: Any) -> int:
    """Print the status after a turn, with `fields` for programs; return the exit code."""
    status = build_status(conversation_id, state).model_dump(mode="json")
    line = f"\n{state.status} after {_summarize_usage(state)}"
    show_result({"result": status, **fields}, output, line)
    if output is Format.text:
        note_pending_calls(conversation_id, state)
    return exit_code_of(state)


def note_pending_calls(conversation_id: str, state: State) -> None:
    """Print the command that answers the actions that wait for a person."""
    if waiting := actions_to_confirm(state):
        calls = " ".join(f"--call {call.tool_call_id}" for call in waiting)
        note(f"It waits for you: `perdure approve {conversation_id} {calls}`, or `reject`.")


def exit_code_of(state: State) -> int:
    """Map a turn to 0 (finished), 1 (failed) or 4 (waits for a person)."""
    if state.status in ("error", "stuck"):
        return EXIT_FAILED
    return EXIT_OK if state.status == "finished" else EXIT_CONFLICT


def _summarize_usage(state: State) -> str:
    spent, count = state.usage, state.response_count
    answers = f"{count} answer{'' if count == 1 else 's'} of the model"
    return f"{answers}: {spent.prompt_tokens + spent.completion_tokens:,} tokens, ${spent.cost:.4f}"


def calls_awaiting_approval(status: ConversationStatus) -> list[PendingCall]:
    """List the calls that wait for a person."""
    return [call for call in status.pending if call.asks]


async def describe_pending_call(conversation: Conversation, call: PendingCall) -> str:
    """Describe a call with its arguments, shortened for a person."""
    event: Any = (await conversation.log.get(call.seq)).event
    if not isinstance(event, ActionEvent) or event.action is None:
        return call.tool_name
    return shorten(describe_call(event.tool_name, event.action))


def status_lines(status: ConversationStatus) -> Iterator[str]:
    for name, value in _status_fields(status):
        yield f"{name:<12} {value}"


def _status_fields(status: ConversationStatus) -> Iterator[tuple[str, str]]:
    lines = {
        "title": status.title,
        "status": status.status,
        "reason": status.reason,
        "trouble": status.trouble,
        "turn": f"{status.turn}, {status.iterations} answers of the model",
        "events": f"{status.next_seq}, {status.shown} of them in view ({status.tokens:,} tokens)",
        "waiting": f"{status.waiting} not in the log yet" if status.waiting else None,
        "model": status.model,
        "tags": ", ".join(status.tags),
        "tokens": _describe_tokens(status.spent),
        "cost": f"${status.spent.cost:.4f}",
    }
    yield from ((name, value) for name, value in lines.items() if value)
    if len(status.spent_on) > 1:
        for model, spent in status.spent_on.items():
            yield "", f"{model}: {_describe_tokens(spent)}, ${spent.cost:.4f}"
    for call in status.pending:
        suffix = ", waits for you" if call.asks else ""
        action = f"{call.tool_call_id} {call.tool_name}, seq {call.seq}"
        yield "pending", f"{action}, risk {call.risk}{suffix}"


def _describe_tokens(usage: Usage) -> str:
    cache_counts = {"from the cache": usage.cached_tokens, "to the cache": usage.cache_write_tokens}
    kinds = [f"{count:,} {kind}" for kind, count in cache_counts.items() if count]
    prompt = f"{usage.prompt_tokens:,} in" + (f" ({', '.join(kinds)})" if kinds else "")
    reasoning = f" ({usage.reasoning_tokens:,} of reasoning)" if usage.reasoning_tokens else ""
    return f"{prompt}, {usage.completion_tokens:,} out{reasoning}"


@contextmanager
def announce_conversation(
    conversation: Conversation, environment: Environment, output: Format, script: Path | None = None
) -> Iterator[None]:
    """Print where a conversation is; after ^C or a long outage, how to return to it."""
    if output is Format.jsonl:
        show_json({"conversation_id": conversation.id}, output)
    note_start(conversation, environment)
    try:
        yield
    except (asyncio.CancelledError, StoreUnavailable):
        note_return(conversation.id, environment, script)
        raise


def note_start(conversation: Conversation, environment: Environment) -> None:
    """Print where to look at a conversation that begins."""
    prefix = conversation_prefix(environment.settings.user, conversation.id)
    note(f"conversation  {conversation.id}", "bold")
    note(f"  its events  {environment.settings.store}/{prefix}events/")
    if environment.stack_info is not None:
        workflows = f"{environment.stack_info.ui}/namespaces/default/workflows"
        note(f"  Temporal    {workflows}/{conversation.workflow_id}")
        note(f"  its worker  kill -9 {environment.stack_info.pids['worker']}   and see it go on")
    note("")


def note_return(conversation_id: str, environment: Environment, script: Path | None) -> None:
    """Print how to return to a conversation that goes on."""
    if environment.own_stack is None:
        note(
            f"\nThe conversation goes on: `perdure watch {conversation_id}` shows it, and "
            f"`perdure chat --resume {conversation_id}` comes back to it."
        )
    else:
        note(
            "\nThis command's stack ends with it, and the conversation waits. To go on: "
            f"`perdure dev`, and `perdure chat --resume {conversation_id}` in another terminal."
        )
    if script is not None:
        note("The scripted model ends with this command too: the conversation will ask in vain.")
