"""What ends the waits of agents: signals, and answers to questions."""

from fastapi import APIRouter

from perdure.agent.loop.start import RecordedSignal
from perdure.api.waiting import AnswerQuestion, AnswerResult, SendSignal
from perdure.client.ids import derive_message_id
from perdure.gateway.callers import ToWrite
from perdure.gateway.views.idempotency import IdempotencyKey

router = APIRouter(prefix="/v1/conversations/{conversation_id}", tags=["conversations"])


@router.post("/signals/{name}")
async def send_signal(
    name: str, body: SendSignal, to: ToWrite, idempotency_key: IdempotencyKey = None
) -> RecordedSignal:
    """Send a signal by its name to the agent; `taken` says that the agent was waiting for it.

    Any other one is kept for the next wait of its name, 50 at most: a further one is a conflict.
    """
    signal_id = body.signal_id
    if signal_id is None and idempotency_key is not None:
        signal_id = derive_message_id(to.client.user_id, idempotency_key)
    return await to.conversation.signal(name, body.data, signal_id)


@router.post("/answer")
async def answer_question(body: AnswerQuestion, to: ToWrite) -> AnswerResult:
    """Answer the question that the agent waits with; a message is an answer as well."""
    return AnswerResult(text=await to.conversation.answer(body.text, body.choice, body.call))
