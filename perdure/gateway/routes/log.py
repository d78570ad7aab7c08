"""What a client of the library needs of a conversation besides its events."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from perdure.api.reading import Diagnosis, News, Trouble
from perdure.client.absence import WorkflowLost
from perdure.client.outage import check_workflow
from perdure.client.patience import Outage
from perdure.gateway.callers import ToRead
from perdure.gateway.views.conversations import require_conversation
from perdure.storage.log.cached_state import encode_cached_state
from perdure.storage.log.state import read_state

router = APIRouter(prefix="/v1/conversations/{conversation_id}", tags=["conversations"])

NO_PATIENCE = 0.0
"""Seconds: the client that asks decides how long it bears an outage."""


@router.get("/trouble")
async def get_trouble(to: ToRead) -> Diagnosis:
    """Find what keeps the conversation from going on."""
    await require_conversation(to.conversation)
    found = await to.conversation.diagnose()
    return Diagnosis(trouble=Trouble(**found._asdict()) if found else None)


@router.get("/news")
async def get_news(to: ToRead, next_seq: Annotated[int, Query(ge=0, le=2**53)] = 0) -> News:
    """Tell whether more is to be recorded than the slots before `next_seq`.

    A workflow that has failed is a conflict; a fork that nobody has started has none.
    """
    await require_conversation(to.conversation)
    workflow = to.conversation.workflow
    try:
        await check_workflow(workflow, Outage(NO_PATIENCE))
    except WorkflowLost:
        return News(has_news=False, has_workflow=False)
    return News(has_news=await workflow.has_news(next_seq))


@router.get(
    "/state",
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
async def get_state(to: ToRead) -> Response:
    """Read the state that the events add up to: a cache for clients of the same version."""
    await require_conversation(to.conversation)
    state = await read_state(to.conversation.log)
    return Response(encode_cached_state(state), media_type="application/json")
