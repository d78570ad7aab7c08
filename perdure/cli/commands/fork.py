"""`perdure fork`: begin a conversation from a point of another one."""

from perdure.cli.environment import connect_client
from perdure.cli.options import Format
from perdure.cli.output import note, show, show_json
from perdure.cli.script_server import resolve_script_path
from perdure.client import fork as forks
from perdure.client.fork import Fork


async def execute(conversation_id: str, at: int | None, model: str | None, output: Format) -> None:
    client = await connect_client()
    resolved = resolve_script_path(model) if model is not None else None
    forked = await forks.fork(client, conversation_id, at, resolved)
    if output is Format.text:
        show(forked.conversation.id)
        _explain(forked)
        return
    fields = {
        "conversation_id": forked.conversation.id,
        "parent": conversation_id,
        "at": forked.at,
        "status": forked.state.status,
        "unanswered": [call.tool_call_id for call in forked.state.pending],
        "workspace": _workspace(forked),
    }
    show_json(fields, output)


def _explain(forked: Fork) -> None:
    """Note what a person may not expect of a fork."""
    conversation_id, state = forked.conversation.id, forked.state
    note(f"It begins with the events up to seq {forked.at}, and is {state.status}.")
    if calls := [call.tool_name for call in state.pending if not call.repeatable]:
        note(
            f"Not done again: {', '.join(calls)} had no result by then. Unless it waits for you, "
            "the agent is told that the outcome is unknown."
        )
    if workspace := _workspace(forked):
        note(f"It works in the same directory as the other conversation: {workspace}.", "yellow")
    else:
        note("It works in a directory of its own, which is empty.")
    resume_hint = f"`perdure resume {conversation_id}`, or " if state.status == "running" else ""
    note(f"To go on: {resume_hint}`perdure send {conversation_id} TEXT --wait`.")


def _workspace(forked: Fork) -> str | None:
    return forked.state.spec.workspace if forked.state.spec else None
