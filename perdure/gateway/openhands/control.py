"""Routes of OpenHands' client by which it steers a conversation."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure.agent.loop.state import WAITING_STATUSES, State, actions_to_confirm
from perdure.agent.spec import NoCondenser
from perdure.client.ask import ask as ask_agent
from perdure.errors import Conflict, Invalid, TimedOut
from perdure.gateway.callers import Caller
from perdure.gateway.openhands.addressing import find_call, find_caller, hint
from perdure.gateway.openhands.answers import answer, read_body, refuse
from perdure.gateway.openhands.bodies import (
    AnalyzerBody,
    AnswerBody,
    PolicyBody,
    QuestionBody,
    SecretsBody,
    SentMessage,
)
from perdure.gateway.openhands.conversation import Call
from perdure.gateway.openhands.waiting import wait_for_resumption, wait_for_state
from perdure.storage.log.state import read_agent, read_state

INTERRUPT_WAIT = 5.0
"""Seconds to wait until what is at work has stopped."""

SERVED_ANALYZERS = ("LLMSecurityAnalyzer",)


async def send_message(request: Request) -> Response:
    """Record a message; with `run` the agent goes on with it."""
    call = await find_call(request, "write")
    await send(call, await read_body(request, SentMessage))
    hint(request, call)
    return answer()


async def send(call: Call, message: SentMessage, message_id: str | None = None) -> None:
    """Record a message, also in a conversation that is closed. Raises Invalid."""
    call.to.gateway.agents.policy.check_images(message.images)
    await call.to.conversation.submit(
        message.text, message_id, images=message.images, reopen=True, run=message.run
    )


async def run(request: Request) -> Response:
    """Make the agent go on; answer once it is at work, or has come to rest again.

    Where calls wait for a person, to run is to accept them.
    """
    call = await find_call(request, "write")
    with call.door.runs.asking(call.key):
        state = await read_state(call.log)
        if state.status == "running":
            raise refuse(409, "The conversation is running already.")
        hint(request, call)
        if waiting := actions_to_confirm(state):
            with suppress(Invalid):  # somebody else has answered
                await call.to.conversation.respond(True, through=waiting[-1].seq)
        else:
            await _resume(call, state)
    return answer()


async def _resume(call: Call, state: State) -> None:
    """Resume, and wait until that is in the log. Raises TimedOut without a worker."""
    try:
        await call.to.conversation.resume()
    except Conflict:  # it is closed: only a message opens it again
        raise refuse(409, "The conversation is closed: send a message to open it again.") from None
    await wait_for_resumption(call.log, state)


async def answer_calls(request: Request) -> Response:
    """Accept or reject all calls that wait; after a rejection the agent rests."""
    call = await find_call(request, "write")
    body = await read_body(request, AnswerBody)
    waiting = actions_to_confirm(await read_state(call.log))
    if waiting:
        with suppress(Invalid):  # somebody else has answered
            await call.to.conversation.respond(
                body.accept, through=waiting[-1].seq, reason=body.reason, run=body.accept
            )
    hint(request, call)
    return answer()


async def pause(request: Request) -> Response:
    """Pause between two steps; one that has no workflow rests already."""
    call = await find_call(request, "write")
    with suppress(Conflict):
        await call.to.conversation.pause()
    hint(request, call)
    return answer()


def is_stopped(state: State) -> bool:
    """Tell whether the agent neither works nor waits."""
    return state.at_rest and state.status not in WAITING_STATUSES


async def interrupt(request: Request) -> Response:
    """Stop what is at work, and answer once it has stopped."""
    call = await find_call(request, "write")
    if not is_stopped(await read_state(call.log)):
        await call.to.conversation.interrupt()
        hint(request, call)
        with suppress(TimedOut):
            await wait_for_state(call.log, is_stopped, "It did not stop", max_wait=INTERRUPT_WAIT)
    return answer()


async def condense(request: Request) -> Response:
    """Condense the view before the next model call."""
    call = await find_call(request, "write")
    agent = await read_agent(call.log, await read_state(call.log))
    if agent is None or isinstance(agent.condenser, NoCondenser):
        raise refuse(409, "The agent has no condenser.")
    await call.to.conversation.condense()
    hint(request, call)
    return answer()


async def set_policy(request: Request) -> Response:
    """Change the policy of confirmation."""
    call = await find_call(request, "write")
    body = await read_body(request, PolicyBody)
    confirmation = body.policy.confirmation().model_dump(mode="json")
    await call.to.conversation.configure({"confirmation": confirmation})
    return answer()


async def set_analyzer(request: Request) -> Response:
    """Accept the analyzer that our agents have; no other is served."""
    await find_call(request, "write")
    body = await read_body(request, AnalyzerBody)
    kind = body.security_analyzer and body.security_analyzer.get("kind")
    if kind is not None and kind not in SERVED_ANALYZERS:
        raise refuse(
            501, f"The analyzer {str(kind)[:100]!r} is not served: workers have their own."
        )
    return answer()


async def ask(request: Request) -> Response:
    """Ask the agent beside the conversation, which has no event of it."""
    call = await find_call(request, "write")
    call.to.gateway.rates.take("costly", call.to.client.user_id)
    body = await read_body(request, QuestionBody)
    found = await ask_agent(call.to.client, call.to.id, body.question, 60.0)
    return answer({"response": found.text})


async def set_secrets(request: Request) -> Response:
    """Hand secrets of the user in, and let the agent use them."""
    call = await find_call(request, "write")
    body = await read_body(request, SecretsBody)
    names = await take_secrets(call.to.caller, body.secrets)
    agent = await read_agent(call.log, await read_state(call.log))
    if agent is not None and not set(names) <= set(agent.secrets):
        merged = tuple(dict.fromkeys((*agent.secrets, *names)))
        await call.to.conversation.configure({"secrets": list(merged)})
    return answer()


async def take_secrets(caller: Caller, secrets: Mapping[str, Any]) -> tuple[str, ...]:
    """Hand secrets in as the user's own; return their names. Raises Invalid and Refused."""
    values: dict[str, str] = {}
    for name, source in secrets.items():
        value = source.get("value") if isinstance(source, dict) else source
        if isinstance(source, dict) and source.get("kind") != "StaticSecret":
            raise refuse(501, f"The secret {name[:100]!r} is looked up elsewhere: send its value.")
        if not isinstance(value, str):
            raise refuse(422, f"The secret {name[:100]!r} has no value.")
        values[name] = value
    if values and caller.client.secret_keys is None:
        raise refuse(501, "No secrets are taken here: the worker's settings name what there is.")
    await asyncio.gather(*(caller.client.put_secret(*item) for item in values.items()))
    return tuple(values)


async def refuse_unserved(request: Request) -> Response:
    """Say that something is not served."""
    await find_call(request, "read" if request.method == "GET" else "write")
    raise refuse(501, "This is not served here: fork the conversation, or start another one.")


async def refuse_shell(request: Request) -> Response:
    """Say that nobody but the agent has a shell and files in its workspace."""
    await find_caller(request, "write")
    raise refuse(501, "There is no shell and no file access besides the agent's: ask the agent.")


CONVERSATION = "/api/conversations/{conversation_id}"

HANDLERS = {
    "events": send_message,
    "run": run,
    "events/respond_to_confirmation": answer_calls,
    "pause": pause,
    "interrupt": interrupt,
    "condense": condense,
    "confirmation_policy": set_policy,
    "security_analyzer": set_analyzer,
    "ask_agent": ask,
    "secrets": set_secrets,
    **dict.fromkeys(("navigate", "load_plugin", "switch_llm", "switch_profile"), refuse_unserved),
}

UNSERVED = ("goal", "children", "runtime")
"""Parts of a conversation, with paths of their own, that are not served."""

ROUTES = [
    *(
        Route(f"{CONVERSATION}/{path}", handle, methods=["POST"])
        for path, handle in HANDLERS.items()
    ),
    *(
        Route(f"{CONVERSATION}/{path}{rest}", refuse_unserved, methods=["GET", "POST"])
        for path in UNSERVED
        for rest in ("", "/{rest:path}")
    ),
    *(
        Route(f"/api/{kind}/{{rest:path}}", refuse_shell, methods=["GET", "POST"])
        for kind in ("bash", "file", "git")
    ),
]
