"""The permission of a person for the calls that wait for one."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from perdure.acp.peer import Peer
from perdure.acp.projection import Projection
from perdure.acp.rpc import RpcError
from perdure.acp.tool_calls import describe_call
from perdure.agent.loop.start import PendingCall
from perdure.client.protocol import ConversationHandle
from perdure.gateway.turns.parts import Called

Choice: TypeAlias = Literal["allow_once", "allow_always", "reject_once"]

OPTIONS: dict[Choice, str] = {
    "allow_once": "Allow",
    "allow_always": "Always allow {tool} in this session",
    "reject_once": "Reject",
}

REASON = "The user rejected the call."
"""What the model is shown of a rejection."""

ALLOWED_TOOLS = "acp_allowed_tools"
"""The value of the session state that names the tools which are always allowed."""


@dataclass
class Answers:
    """The calls by what a person has answered; `is_cancelled` where there is no answer."""

    accepted: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    allowed_tools: set[str] = field(default_factory=set)
    is_cancelled: bool = False


async def ask_for(
    peer: Peer,
    session_id: str,
    projection: Projection,
    calls: Collection[PendingCall],
    allowed_tools: Collection[str],
) -> Answers:
    """Ask for each call in turn, until one is cancelled; none that is always allowed."""
    answers = Answers(allowed_tools=set(allowed_tools))
    for call in calls:
        name = call.tool_call_id
        if call.tool_name in answers.allowed_tools:
            answers.accepted.append(name)
            continue
        shown = projection.calls.get(name) or Called("", name, call.tool_name, "{}")
        choice = await _ask(peer, session_id, shown, projection.cwd)
        match choice:
            case "allow_once" | "allow_always":
                answers.accepted.append(name)
            case "reject_once":
                answers.rejected.append(name)
            case None:
                return Answers(is_cancelled=True)
        if choice == "allow_always":
            answers.allowed_tools.add(call.tool_name)
    return answers


async def _ask(peer: Peer, session_id: str, call: Called, cwd: str) -> Choice | None:
    """Ask for one call; None where the person has cancelled, or the program cannot ask them."""
    options = [
        {"optionId": kind, "name": name.format(tool=call.tool_name), "kind": kind}
        for kind, name in OPTIONS.items()
    ]
    params = {"sessionId": session_id, "toolCall": describe_call(call, cwd), "options": options}
    try:
        return read_outcome(await peer.ask("session/request_permission", params))
    except RpcError:
        return None


def read_outcome(result: Any) -> Choice | None:
    """Return the option that was selected; None for all else."""
    outcome = result.get("outcome") if isinstance(result, dict) else None
    if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
        return None
    return next((kind for kind in OPTIONS if kind == outcome.get("optionId")), None)


async def wait_until_answered(conversation: ConversationHandle, after: int) -> None:
    """Wait until no call of a conversation waits any more: somebody else has answered."""
    async with aclosing(conversation.log.tail(after)) as entries:
        async for _ in entries:
            if (await conversation.state()).status != "waiting_for_confirmation":
                return


async def first_of(asking: Awaitable[Answers], *others: Callable[[], Awaitable[Any]]) -> Answers:
    """Return the answers; a cancelled one if something else comes first."""
    asked = asyncio.ensure_future(asking)
    tasks = [asked, *(asyncio.ensure_future(other()) for other in others)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return asked.result() if asked.done() else Answers(is_cancelled=True)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
