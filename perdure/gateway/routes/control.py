"""What steers a conversation."""

from functools import partial

from fastapi import APIRouter

from perdure.agent.configure import check_changes
from perdure.agent.loop.ask import AskResponse
from perdure.agent.loop.start import RecordedMessage
from perdure.agent.spec import Agent
from perdure.api.conversations import (
    AskQuestion,
    Configure,
    ForkConversation,
    ForkResult,
    ReopenResult,
    Respond,
    RespondResult,
    SendMessage,
)
from perdure.client.ask import ask as ask_agent
from perdure.client.fork import fork as fork_conversation
from perdure.client.ids import derive_message_id
from perdure.errors import Conflict, Invalid
from perdure.gateway.agents.own_secrets import list_own_secrets
from perdure.gateway.callers import COSTLY, ConversationCall, ToWrite
from perdure.gateway.views.idempotency import IdempotencyKey, require_same_text
from perdure.operations.reopen import reopen as reopen_conversation
from perdure.storage.log.state import read_agent

router = APIRouter(prefix="/v1/conversations/{conversation_id}", tags=["conversations"])


@router.post("/messages")
async def send_message(
    body: SendMessage, to: ToWrite, idempotency_key: IdempotencyKey = None
) -> RecordedMessage | None:
    """Send a message, and wait until it is in the log; without `wait`, until Temporal has it."""
    to.gateway.agents.policy.check_images(body.images)
    message_id = body.message_id
    if message_id is None and idempotency_key is not None:
        message_id = derive_message_id(to.client.user_id, idempotency_key)
    if not body.wait:
        await to.conversation.send(body.text, message_id, body.images, body.reopen, body.run)
        return None
    recorded = await to.conversation.submit(
        body.text, message_id, images=body.images, reopen=body.reopen, run=body.run
    )
    if idempotency_key is not None:
        await require_same_text(to.conversation.log, recorded.seq, body.text)
    return recorded


@router.post("/pause", status_code=204)
async def pause(to: ToWrite) -> None:
    """Pause between two steps."""
    await to.conversation.pause()


@router.post("/resume", status_code=204)
async def resume(to: ToWrite) -> None:
    """Go on after a pause, an interrupt, an error or a limit."""
    await to.conversation.resume()


@router.post("/interrupt", status_code=204)
async def interrupt(to: ToWrite) -> None:
    """Stop the running model or tool call; the conversation waits for its user."""
    await to.conversation.interrupt()


@router.post("/condense", status_code=204)
async def condense(to: ToWrite) -> None:
    """Condense the view before the next model call."""
    await to.conversation.condense()


@router.post("/close", status_code=204)
async def close(to: ToWrite) -> None:
    """Close the conversation; its log stays, and a message with `reopen` opens it again."""
    await to.conversation.close()


@router.post("/reopen")
async def reopen(to: ToWrite) -> ReopenResult:
    """Start the workflow of a conversation that needs one and has none."""
    result = await reopen_conversation(to.client, to.id, to.owner)
    return ReopenResult(outcome=result.outcome, reason=result.reason)


@router.post("/respond")
async def respond(body: Respond, to: ToWrite) -> RespondResult:
    """Accept or reject actions that wait for a person."""
    calls = await to.conversation.respond(
        body.accept, body.calls, body.through, body.reason, body.run
    )
    return RespondResult(calls=tuple(calls))


@router.post("/configure")
async def configure(body: Configure, to: ToWrite) -> RecordedMessage:
    """Change fields of the agent: its model, its limits, its policy of confirmation …"""
    before = await _load_agent(to)
    try:
        after = before.model_copy(update=_parse(before, body))
    except ValueError as error:
        raise Invalid(str(error)) from error
    # Whoever may write to a conversation of another lends none of its owner's secrets.
    is_own = to.conversation.log.user_id == to.client.user_id
    own_secrets = await list_own_secrets(to.client, after) if is_own else ()
    to.gateway.agents.policy.check(after, before, own_secrets)
    return await to.conversation.configure(body.changes)


async def _load_agent(to: ConversationCall) -> Agent:
    """Load the agent in force. Raises NotFound and Conflict."""
    state = await to.conversation.require_open()
    agent = await read_agent(to.conversation.log, state)
    if agent is None:
        raise Conflict(
            f"The conversation {to.id} has no agent yet: no worker has taken it up.",
            "Ask again later.",
        )
    return agent


def _parse(before: Agent, body: Configure) -> dict[str, object]:
    """Return the fields that change, parsed. Raises ValueError."""
    changes = check_changes(before, body.changes).changes
    fields = {**before.model_dump(mode="json"), **changes}
    after = Agent.model_validate(
        {name: value for name, value in fields.items() if value is not None}
    )
    return {name: getattr(after, name) for name in changes}


@router.post("/fork", status_code=201, dependencies=COSTLY)
async def fork(body: ForkConversation, to: ToWrite) -> ForkResult:
    """Make a conversation of one's own that begins with the events up to a slot."""
    agents, model = to.gateway.agents, body.model
    if model is not None:
        agents.policy.check_model(model)
    is_own = to.conversation.log.user_id == to.client.user_id
    check = None if is_own else partial(agents.check_inherited, model=model)
    made = await fork_conversation(to.client, to.id, body.at, model, to.owner, check)
    return ForkResult(conversation_id=made.conversation.id, at=made.at)


@router.post("/ask", dependencies=COSTLY)
async def ask(body: AskQuestion, to: ToWrite) -> AskResponse:
    """Ask the agent beside the conversation, which has no event of it."""
    return await ask_agent(to.client, to.id, body.question, body.max_wait, to.owner)
