"""Commands that steer a conversation and change it: signals, answers, notes and forks."""

from typing import Any

from perdure.cli.arguments import parse_assignment, parse_assignments
from perdure.cli.declarations import conversations
from perdure.cli.environment import connect_client
from perdure.cli.follow import calls_awaiting_approval, describe_pending_call
from perdure.cli.options import ConversationOptions, Format
from perdure.cli.output import note as print_note
from perdure.cli.output import show_result
from perdure.cli.script_server import resolve_script_path
from perdure.client import fork as forks
from perdure.client.conversation import Conversation
from perdure.errors import Conflict, Invalid


async def send_signal(options: conversations.Signal) -> None:
    """Send the signal that has the name of the command."""
    conversation = await _connect(options)
    await getattr(conversation, type(options).__name__.lower())()
    _confirm(options.confirmation, options)


async def approve(options: conversations.Approve) -> None:
    await _answer(options, "approved")


async def reject(options: conversations.Reject) -> None:
    await _answer(options, "rejected", options.reason)


async def _answer(options: conversations.Answer, verb: str, reason: str = "") -> None:
    """Answer the named calls. Raises Invalid, which lists them, where none is named."""
    conversation = await _connect(options)
    calls = options.call or []
    if not calls and options.through is None:
        await _refuse_without_choice(conversation, options.output)
    answered = await conversation.respond(verb == "approved", calls, options.through, reason)
    _confirm(f"{verb}: {', '.join(answered)}", options, **{verb: answered})


async def _refuse_without_choice(conversation: Conversation, output: Format) -> None:
    """Print the calls that wait. Always raises Invalid, or Conflict where none waits."""
    status = await conversation.status()
    waiting = calls_awaiting_approval(status)
    if not waiting:
        raise Conflict(
            f"No action of {conversation.id} waits for an answer: its status is {status.status}."
        )
    if output is Format.text:
        for call in waiting:
            text = await describe_pending_call(conversation, call)
            print_note(f"{call.seq:>6}  {call.tool_call_id}  {call.risk}  {text}")
    ids = ", ".join(call.tool_call_id for call in waiting)
    raise Invalid(
        f"Name the calls that are meant, for nothing is answered unseen: {ids}.",
        f"Give --call ID for each, or --through {waiting[-1].seq} for all up to that seq.",
    )


async def configure(options: conversations.Configure) -> None:
    fields = parse_assignments(options.changes)
    recorded = await (await _connect(options)).configure(fields)
    _confirm(f"In force from seq {recorded.seq} on.", options, **recorded.model_dump())


async def note(options: conversations.Note) -> None:
    state = dict(map(parse_assignment, options.state)) if options.state else None
    if options.title is None and not options.tag and not state:
        raise Invalid("There is nothing to note.", "Give --title, --tag or --state.")
    await (await _connect(options)).note(options.title, options.tag or None, state)
    _confirm("Noted.", options)


async def fork(options: conversations.Fork) -> None:
    model = resolve_script_path(options.model) if options.model is not None else None
    client = await connect_client()
    forked = await forks.fork(client, options.conversation_id, options.at, model)
    state = forked.state
    fields = {
        "conversation_id": forked.conversation.id,
        "parent": options.conversation_id,
        "at": forked.at,
        "status": state.status,
        "unanswered": [call.tool_call_id for call in state.pending],
        "workspace": state.spec.workspace if state.spec else None,
    }
    show_result(fields, options.output, forked.conversation.id)
    if options.output is Format.text:
        _explain(forked)


def _explain(forked: forks.Fork) -> None:
    """Note what a person may not expect of a fork."""
    conversation_id, state = forked.conversation.id, forked.state
    print_note(
        f"It begins with the events up to seq {forked.at}, and its status is {state.status}."
    )
    if calls := [call.tool_name for call in state.pending if not call.repeatable]:
        print_note(
            f"Not done again: {', '.join(calls)} had no result by then. Unless it waits for you, "
            "the agent is told that the outcome is unknown."
        )
    if state.spec and (workspace := state.spec.workspace):
        message = f"It works in the same directory as the other conversation: {workspace}."
        print_note(message, "yellow")
    else:
        print_note("It works in a directory of its own, which is empty.")
    resume_hint = f"`perdure resume {conversation_id}`, or " if state.status == "running" else ""
    print_note(f"To go on: {resume_hint}`perdure send {conversation_id} TEXT --wait`.")


async def _connect(options: ConversationOptions) -> Conversation:
    return (await connect_client()).conversation(options.conversation_id)


def _confirm(remark: str, options: ConversationOptions, **fields: Any) -> None:
    fields = {"conversation_id": options.conversation_id, **fields}
    show_result(fields, options.output, remark=remark)
