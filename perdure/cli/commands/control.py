"""Commands that steer a conversation and change it: signals, answers, notes and forks."""

from typing import Any

from perdure.agent.configure import check_changes
from perdure.agent.spec import Agent, ModelSpec
from perdure.cli.agent_in_force import agent_fields, describe_fields, load_agent
from perdure.cli.agent_options import check_code_names
from perdure.cli.arguments import parse_assignment, parse_assignments
from perdure.cli.declarations import control
from perdure.cli.environment import connect_client, open_conversation
from perdure.cli.follow import describe_pending_call
from perdure.cli.model_check import check_models
from perdure.cli.options import ConversationOptions, Format
from perdure.cli.output import note as print_note
from perdure.cli.output import show_result
from perdure.cli.rendering.status_lines import calls_awaiting_approval
from perdure.cli.script_server import resolve_script_path
from perdure.cli.workspaces import find_workspace
from perdure.client.agents.paths import resolve_paths
from perdure.client.fork_handle import Fork
from perdure.client.ids import split_owner
from perdure.client.protocol import ConversationHandle
from perdure.errors import Conflict, Invalid
from perdure.models.budget import check_budget, list_models
from perdure.operations.error_reports import EXIT_CONFLICT, EXIT_OK
from perdure.settings.settings import load_settings
from perdure.storage.log.state import read_agent, read_state


async def send_signal(options: control.Signal) -> None:
    """Send the signal that has the name of the command."""
    conversation = await _connect(options)
    await getattr(conversation, type(options).__name__.lower())()
    _confirm(options.confirmation, options)


async def approve(options: control.Approve) -> int:
    return await _answer(options, "approved")


async def reject(options: control.Reject) -> int:
    return await _answer(options, "rejected", options.reason)


async def _answer(options: control.Answer, verb: str, reason: str = "") -> int:
    """Answer the named calls, or the only one that waits; list them where several do."""
    conversation = await _connect(options)
    calls = options.call or []
    if not calls and options.through is None:
        waiting = await _list_waiting_calls(conversation)
        if len(waiting) > 1:
            _print_choice(waiting, options)
            return EXIT_CONFLICT
        calls = [call["tool_call_id"] for call in waiting]
        print_note(waiting[0]["call"])
    answered = await conversation.respond(verb == "approved", calls, options.through, reason)
    _confirm(f"{verb}: {', '.join(answered)}", options, **{verb: answered})
    return EXIT_OK


async def _list_waiting_calls(conversation: ConversationHandle) -> list[dict[str, Any]]:
    """List the calls that wait for an answer. Raises Conflict where none does."""
    status = await conversation.status()
    waiting = calls_awaiting_approval(status)
    if not waiting:
        raise Conflict(
            f"No action of {conversation.id} waits for an answer: its status is {status.status}."
        )
    return [
        {
            "seq": call.seq,
            "tool_call_id": call.tool_call_id,
            "risk": call.risk,
            "call": await describe_pending_call(conversation, call),
        }
        for call in waiting
    ]


def _print_choice(waiting: list[dict[str, Any]], options: control.Answer) -> None:
    """Print the calls that wait, and how to name them."""
    lines = [
        f"{call['seq']:>6}  {call['tool_call_id']}  risk {call['risk'].lower()}  {call['call']}"
        for call in waiting
    ]
    hint = f"Name those that you mean: --call ID for each, or --through {waiting[-1]['seq']}."
    fields = {"conversation_id": options.conversation_id, "waiting": waiting}
    show_result(fields, options.output, *lines, remark=hint)


async def configure(options: control.Configure) -> None:
    conversation = await _connect(options)
    fields = resolve_paths(parse_assignments(options.changes))
    if fields.keys() & {"model", "fallbacks", "condenser", "analyzers", "limits"}:
        await _check_new_agent(conversation, fields)
    recorded = await conversation.configure(fields)
    agent = agent_fields(await load_agent(conversation.log), fields.keys())
    result = {"conversation_id": conversation.id, **recorded.model_dump(), "agent": agent}
    remark = f"In force from seq {recorded.seq} on."
    show_result(result, options.output, *describe_fields(agent), remark=remark)


async def _check_new_agent(conversation: ConversationHandle, fields: dict[str, Any]) -> None:
    """Check the models and the budget of an agent as it would be changed. Raises Invalid."""
    agent = await load_agent(conversation.log)
    try:
        changes = check_changes(agent, fields).changes
    except ValueError as error:
        raise Invalid(str(error)) from error
    changed = Agent.model_validate({**agent.model_dump(), **changes})
    if fields.keys() != {"limits"}:
        await check_models(list_models(changed), load_settings())
    check_budget(changed)
    check_code_names(changed)


async def note(options: control.Note) -> None:
    state = dict(map(parse_assignment, options.state)) if options.state else None
    if options.title is None and not options.tag and not state:
        raise Invalid("There is nothing to note.", "Give --title, --tag or --state.")
    await (await _connect(options)).note(options.title, options.tag or None, state)
    _confirm("Noted.", options)


async def delete(options: control.Delete) -> None:
    await (await _connect(options)).delete()
    _confirm("Closed, and hidden from lists.", options)


async def fork(options: control.Fork) -> None:
    client = await connect_client()
    model = resolve_script_path(options.model) if options.model is not None else None
    conversation_id, owner = split_owner(options.conversation_id)
    if model is not None:
        await _check_model(client.conversation(conversation_id, owner), ModelSpec(name=model))
    forked = await client.fork(conversation_id, options.at, model, owner)
    state = forked.state
    workspace = state.spec.workspace if state.spec else None
    fields = {
        "conversation_id": forked.conversation.id,
        "parent": options.conversation_id,
        "at": forked.at,
        "status": state.status,
        "unanswered": [call.tool_call_id for call in state.pending],
        "workspace": find_workspace(load_settings(), forked.conversation.id, workspace),
    }
    show_result(fields, options.output, forked.conversation.id)
    if options.output is Format.text:
        _explain(forked)


async def _check_model(conversation: ConversationHandle, model: ModelSpec) -> None:
    """Check a model for what a conversation is to go on with. Raises Invalid."""
    await check_models([model], load_settings())
    log = conversation.log
    if agent := await read_agent(log, await read_state(log)):
        check_budget(agent.model_copy(update={"model": model}))


def _explain(forked: Fork[ConversationHandle]) -> None:
    """Note what a person may not expect of a fork."""
    conversation_id, state = forked.conversation.id, forked.state
    middle = ", in the middle of a turn," if state.status == "running" else ""
    print_note(f"It begins with the events up to seq {forked.at}{middle} and waits for you.")
    if calls := [call.tool_name for call in state.pending if not call.repeatable]:
        print_note(
            f"Not done again: {', '.join(calls)} had no result by then. Unless it waits for you, "
            "the agent is told that the outcome is unknown."
        )
    if state.spec and (workspace := state.spec.workspace):
        message = f"It works in the same directory as the other conversation: {workspace}."
        print_note(message, "yellow")
    else:
        content = "is empty" if state.files_seq is None else "has the files of that seq"
        print_note(f"It works in a folder of its own, which {content}.")
    resume_hint = f"`perdure resume {conversation_id}`, or " if state.status == "running" else ""
    print_note(f"To go on: {resume_hint}`perdure send {conversation_id} TEXT --wait`.")


async def _connect(options: ConversationOptions) -> ConversationHandle:
    return open_conversation(await connect_client(), options.conversation_id)


def _confirm(remark: str, options: ConversationOptions, **fields: Any) -> None:
    fields = {"conversation_id": options.conversation_id, **fields}
    show_result(fields, options.output, remark=remark)
