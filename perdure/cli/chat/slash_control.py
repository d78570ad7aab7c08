"""The slash commands that steer a conversation, or go on with another one."""

import asyncio

from perdure.agent.configure import check_changes
from perdure.agent.spec import Agent, ModelSpec
from perdure.cli.agent_options import parse_confirmation
from perdure.cli.chat.chat import Chat
from perdure.cli.model_check import check_models
from perdure.cli.output import note, show
from perdure.cli.rendering.log_pages import title_from_first_message
from perdure.cli.script_server import resolve_script_path
from perdure.client.http.remote_agent import RemoteAgent
from perdure.client.ids import new_message_id
from perdure.client.turn import is_turn_over
from perdure.errors import Conflict, Invalid, NotFound
from perdure.events.content import join_text
from perdure.events.messages import MessageEvent
from perdure.events.summary import EXIT_COMMAND
from perdure.models.budget import check_budget
from perdure.storage.log.state import load_cached_state

NOTHING_TO_RESUME = (
    *("finished", "running", "waiting"),
    *("waiting_for_confirmation", "waiting_for_answer"),
)

MAX_LISTED = 10
"""Conversations that /resume lists."""


async def model(chat: Chat, name: str) -> None:
    """Show the model, or change it."""
    if name:
        spec = ModelSpec(name=resolve_script_path(name))
        await check_models([spec], chat.environment.settings)
        if chat.agent is not None:
            check_budget(chat.agent.model_copy(update={"model": spec}))
        await _configure(chat, "model", spec.name)
        note(f"{name} answers from now on.")
    elif chat.agent is not None:
        show(chat.agent.model.name)


async def confirm(chat: Chat, policy: str) -> None:
    """Show or set which actions wait: never, risky, always."""
    if policy:
        confirmation = parse_confirmation(policy)
        await _configure(chat, "confirmation", confirmation.model_dump(mode="json"))
        note(f"Actions wait for you: {policy}.")
    elif chat.agent is not None:
        show(describe_policy(chat.agent))


async def _configure(chat: Chat, field: str, value: object) -> None:
    """Change the agent, also before the conversation has begun. Raises Invalid."""
    if chat.spec is None:
        await chat.conversation.configure({field: value})
        return
    try:
        changes = check_changes(chat.spec, {field: value}).changes
    except ValueError as error:
        raise Invalid(str(error)) from error
    fields = {**chat.spec.model_dump(mode="json"), **changes}
    if isinstance(chat.spec, RemoteAgent):
        fields["request"] = {**chat.spec.request, **changes}
    chat.spec = type(chat.spec).model_validate(fields)


def describe_policy(agent: Agent) -> str:
    policy = agent.confirmation
    return f"risky:{policy.threshold}" if policy.policy == "risky" else policy.policy


async def edit(chat: Chat, _: str) -> None:
    """Write the message in $EDITOR."""
    await chat.edit("", in_editor=True)


async def pause(chat: Chat, _: str) -> None:
    """Pause between two steps, until /resume."""
    await chat.require_begun().pause()
    note("The conversation pauses after its current step. /resume continues it.")


async def compact(chat: Chat, _: str) -> None:
    """Condense the conversation for the model."""
    await chat.require_begun().condense()
    note("The conversation is condensed before the next call of the model.")


async def resume(chat: Chat, name: str) -> None:
    """Resume after a pause or stop; or list or open others."""
    if name:
        await _open(chat, name)
    elif chat.spec is None and chat.state.status not in NOTHING_TO_RESUME:
        await chat.conversation.resume()
        await chat.follow_turn()
    else:
        await _list_conversations(chat)


async def _open(chat: Chat, name: str) -> None:
    """Open a conversation by its number in the list, or by the beginning of its id."""
    ids = chat.listed or tuple(await chat.client.list_conversations(100))
    if name.isdecimal() and 0 < int(name) <= len(chat.listed):
        name = chat.listed[int(name) - 1]
    else:
        matches = [id for id in ids if id.startswith(name)]
        if len(matches) > 1:
            raise Invalid(f"{len(matches)} conversations begin with {name}: give more of the id.")
        name = matches[0] if matches else name
    conversation = chat.client.conversation(name)
    newest = await conversation.require_open()
    note(f"The chat goes on with {name}.")
    await chat.open(conversation, max(-1, newest.last_user_seq - 1))


async def _list_conversations(chat: Chat) -> None:
    """List the newest conversations with their numbers. Raises NotFound without any."""
    ids = await chat.client.list_conversations(MAX_LISTED)
    if not ids:
        raise NotFound("There are no conversations yet.", "Write a message to begin one.")
    chat.listed = tuple(ids)
    rows = await asyncio.gather(*(_summarize(chat, id) for id in ids))
    for number, (name, row) in enumerate(zip(ids, rows, strict=True), 1):
        here = "  (this one)" if name == chat.conversation.id else ""
        show(f"  {number:>2}  {name[:8]}  {row}{here}")
    note("/resume NUMBER opens one of them.")


async def _summarize(chat: Chat, name: str) -> str:
    log = chat.client.conversation(name).log
    state = await load_cached_state(log)
    title = state.title or await title_from_first_message(log) or ""
    return f"{state.status if state.next_seq else '?':<10} {title}"


async def undo(chat: Chat, _: str) -> None:
    """Go back to before your last message, files included."""
    conversation = chat.require_rest("undo it")
    seq = chat.state.last_user_seq
    event = (await conversation.log.get(seq)).event if seq >= 0 else None
    if not isinstance(event, MessageEvent) or chat.state.turn < 1:
        raise Conflict("There is no message of yours to take back.")
    await _continue_in_fork(chat, seq - 1)
    note("Your last message and what came of it are taken back; the first conversation keeps them.")
    await chat.edit(join_text(event.llm_message.content))


async def fork(chat: Chat, at: str) -> None:
    """Continue in a copy of the events up to SEQ."""
    chat.require_rest("fork it")
    if at and not at.isdecimal():
        raise Invalid(f"{at!r} is no seq: name the last event to keep, such as /fork 12.")
    await _continue_in_fork(chat, int(at) if at else None)


async def _continue_in_fork(chat: Chat, at: int | None) -> None:
    forked = await chat.client.fork(chat.conversation.id, at)
    first = chat.conversation.id
    await chat.open(forked.conversation, forked.state.next_seq - 1)
    note(f"The chat goes on in {forked.conversation.id}, a fork of {first} at seq {forked.at}.")
    agent = forked.state.spec
    if agent is not None and agent.workspace:
        note(f"Both work in {agent.workspace}: its files stay as they are now.", "yellow")
    if not is_turn_over(forked.state) and forked.state.turn:
        note("Its turn is not over: /resume goes on with it, and so does a message.")


async def leave(chat: Chat, _: str) -> None:
    """Leave; a running turn continues."""
    chat.leave()


async def exit_chat(chat: Chat, _: str) -> None:
    """End the turn as the agent would, and leave."""
    is_over = chat.state.status == "closed" or chat.state.ending is not None
    if chat.spec is None and (chat.at_work or not is_over):
        await chat.conversation.send(EXIT_COMMAND, new_message_id())
    chat.leave()
