"""Display of a conversation: where to find it, and its events up to the end of a turn."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.agent.loop.phase import find_phase
from perdure.agent.loop.start import PendingCall, build_status
from perdure.agent.loop.state import State, actions_to_confirm
from perdure.agent.loop.status import TRUNCATED_REASON
from perdure.cli.consoles import stdout
from perdure.cli.environment import Environment
from perdure.cli.options import Format
from perdure.cli.output import escape_controls, note, show, show_json
from perdure.cli.questions import describe_question
from perdure.cli.rendering.conversation_table import STATUS_WORDS
from perdure.cli.rendering.events import SlotPrinter, describe_call, shorten, wrap_lines
from perdure.cli.rendering.live_region import run_beside, show_live_steps
from perdure.cli.rendering.log_pages import load_contents
from perdure.cli.rendering.status_lines import name_commands, status_fields
from perdure.cli.workspaces import describe_workspace
from perdure.client.protocol import ConversationHandle
from perdure.errors import TimedOut
from perdure.events.entry import Entry
from perdure.events.tools import ActionEvent
from perdure.events.usage import describe_cost
from perdure.operations.error_reports import EXIT_CONFLICT, EXIT_FAILED, EXIT_OK
from perdure.storage.errors import StoreUnavailable
from perdure.storage.log.state import read_answer, read_outputs
from perdure.wording import count

TROUBLE_CHECK_INTERVAL = 2.0
"""Seconds between two checks of whether the conversation goes on."""


@dataclass(frozen=True)
class TurnView:
    """The display of a turn: its events while they come, or its answer alone.

    On a pipe, and with `answer_only`, the answer is all that stdout gets.
    """

    output: Format = Format.text
    full: bool = False
    answer_only: bool = False

    @property
    def shows_events(self) -> bool:
        if self.output is Format.text:
            return stdout.is_terminal and not self.answer_only
        return self.output is Format.jsonl


async def follow(
    conversation: ConversationHandle,
    message_id: str | None,
    after: int,
    view: TurnView,
    limit: float | None = None,
    show_event: Callable[[Entry], None] | None = None,
) -> State:
    """Show the events after slot `after` until the turn that the message began is over.

    `show_event` replaces the usual printing. Raises TimedOut after `limit` seconds, and what
    `Conversation.finished` raises.
    """

    if show_event is None:
        printer = SlotPrinter(view.output, view.full)
        show_event = printer.print_slot if view.shows_events else _ignore
    live = view.output if view.shows_events else Format.json
    end = asyncio.ensure_future(conversation.wait_for_turn(message_id, after))

    async def is_over() -> bool:
        return end.done()

    try:
        async with (
            asyncio.timeout(limit),
            show_live_steps(conversation.watch_running_steps(), live) as finish_step,
            run_beside(note_trouble(conversation)),
        ):
            async for entry in conversation.log.tail(after, is_idle=is_over):
                finish_step(entry)
                show_event(await load_contents(conversation.log, entry) if view.full else entry)
            return await end
    except TimeoutError as error:
        raise TimedOut(
            f"The turn was not over within {limit:g} s.",
            f"It goes on; `perdure watch {conversation.id}` shows it.",
        ) from error
    finally:
        end.cancel()


def _ignore(_: Entry) -> None:
    pass


async def note_trouble(conversation: ConversationHandle) -> None:
    """Note, until cancelled, why the conversation does not go on, and when it does again.

    Each reason is noted once.
    """
    last_cause: str | None = None
    while True:
        await asyncio.sleep(TROUBLE_CHECK_INTERVAL)
        trouble_now = await conversation.diagnose()
        if trouble_now is not None and trouble_now.cause != last_cause:
            sentence = name_commands(trouble_now.sentence, conversation.id)
            note(sentence, "dim" if trouble_now.slow else "yellow")
        elif trouble_now is None and last_cause is not None:
            note("It goes on.")
        last_cause = trouble_now.cause if trouble_now else None


async def print_result(
    conversation: ConversationHandle, state: State, view: TurnView, **fields: Any
) -> int:
    """Print the end of a turn, with `fields` for programs; return the exit code.

    People at a terminal have seen the answer: for them the status and the cost come on stderr.
    """
    answer = await read_answer(conversation.log, state)
    outputs = await read_outputs(conversation.log, state)
    if view.output is not Format.text:
        named = {"outputs": outputs} if outputs is not None else {}
        result = result_fields(conversation.id, state, answer) | named | fields
        show_json(result if view.output is Format.json else {"result": result}, view.output)
        return exit_code_of(state)
    if not view.shows_events and answer:
        for line in wrap_lines(escape_controls(answer)):
            show(line)
    if view.shows_events or state.status != "finished" or state.reason:
        note(f"\n{_describe_end(state)}" if not view.answer_only else _describe_end(state))
        note_pending_calls(conversation.id, state)
    if state.status == "error" and not state.response_count:
        name = conversation.id
        note(f"It is kept: `perdure resume {name}` begins again, `perdure rm {name}` deletes it.")
    return exit_code_of(state)


def result_fields(conversation_id: str, state: State, answer: str) -> dict[str, Any]:
    """Collect what programs want to know of a turn; a cost that is not known is None."""
    return {
        **status_fields(build_status(conversation_id, state)),
        "answer": answer,
        "truncated": state.reason == TRUNCATED_REASON,
        "cost": state.usage.known_cost,
    }


def _describe_end(state: State) -> str:
    reason = f" ({state.reason})" if state.reason else ""
    phase = find_phase(state)
    return f"{STATUS_WORDS.get(phase, phase)}{reason} after {_summarize_usage(state)}"


def note_pending_calls(conversation_id: str, state: State) -> None:
    """Print what waits for a person, and the command that answers it."""
    if state.status == "waiting_for_answer" and state.wait is not None:
        question = "\n".join(describe_question(state.wait.detail()))
        note(f"It asks you: {question}\n`perdure answer {conversation_id} TEXT` answers it.")
    if waiting := actions_to_confirm(state):
        calls = " ".join(f"--call {call.tool_call_id}" for call in waiting)
        note(f"It waits for you: `perdure approve {conversation_id} {calls}`, or `reject`.")


def exit_code_of(state: State) -> int:
    """Map a turn to 0 (the agent has answered), 1 (failed, refused) or 4 (waits for a person)."""
    if state.status in ("error", "stuck") or find_phase(state) == "rejected":
        return EXIT_FAILED
    return EXIT_OK if state.status == "finished" else EXIT_CONFLICT


def _summarize_usage(state: State) -> str:
    spent = state.usage
    answers = count(state.response_count, "answer of the model", "answers of the model")
    tokens = count(spent.prompt_tokens + spent.completion_tokens, "token")
    return f"{answers}: {tokens}, {describe_cost(spent)}"


async def describe_pending_call(conversation: ConversationHandle, call: PendingCall) -> str:
    """Describe a call with its arguments, shortened for a person."""
    event: Any = (await conversation.log.get(call.seq)).event
    if not isinstance(event, ActionEvent) or event.action is None:
        return call.tool_name
    return shorten(describe_call(event.tool_name, event.action))


@contextmanager
def announce_conversation(
    conversation: ConversationHandle,
    environment: Environment,
    view: TurnView,
    script: Path | None = None,
    workspace: str | None = None,
) -> Iterator[None]:
    """Print where a conversation is; after ^C or a long outage, how to return to it."""
    if view.output is Format.jsonl:
        show_json({"conversation_id": conversation.id}, view.output)
    if not view.answer_only:
        note_start(conversation, environment, workspace)
    try:
        yield
    except (asyncio.CancelledError, StoreUnavailable):
        note_return(conversation.id, environment, script)
        raise


def note_start(
    conversation: ConversationHandle, environment: Environment, workspace: str | None = None
) -> None:
    """Print where to look at a conversation that begins."""
    note(f"conversation  {conversation.id}", "bold")
    place = describe_workspace(
        environment.settings, conversation.id, workspace, conversation.log.user_id
    )
    note(f"workspace     {place}")
    if (page := find_workflow_page(conversation, environment)) is not None:
        note(f"Temporal UI   {page}")
    note("")


def find_workflow_page(conversation: ConversationHandle, environment: Environment) -> str | None:
    """Return the address of the workflow's page, where a stack of this machine serves one."""
    workflow_id = getattr(conversation, "workflow_id", None)  # of none behind a gateway
    if environment.stack_info is None or workflow_id is None:
        return None
    return f"{environment.stack_info.ui}/namespaces/default/workflows/{workflow_id}"


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
