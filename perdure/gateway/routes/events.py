"""The events of a conversation, page by page."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from perdure.api.conversations import EventPage
from perdure.gateway.callers import ToRead
from perdure.gateway.views.conversations import require_conversation
from perdure.gateway.views.event_pages import PageRange, read_page
from perdure.gateway.views.validators import make_etag, matches_etag

router = APIRouter(prefix="/v1/conversations/{conversation_id}", tags=["conversations"])

MAX_LIMIT = 1000

Kind = Annotated[str, Query(min_length=1, max_length=64)]


@router.get("/events", response_model=EventPage, responses={304: {"description": "As before."}})
async def list_events(
    request: Request,
    to: ToRead,
    after_seq: Annotated[int, Query(ge=-1, le=2**53)] = -1,
    before_seq: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 100,
    kind: Annotated[list[Kind] | None, Query(max_length=20)] = None,
) -> Response:
    """List entries of the log: the first ones after a slot, or the last ones before another.

    `kind` names kinds of events, such as MessageEvent; it may be repeated.
    """
    log, kinds = to.conversation.log, frozenset(kind or ())
    end = await require_conversation(to.conversation)
    wanted = PageRange.of_query(after_seq, before_seq, end, limit)
    # An event never changes: the page follows from its slots, and from how many there are.
    etag = make_etag(log.user_id, log.conversation_id, wanted, sorted(kinds))
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if matches_etag(request, etag):
        return Response(status_code=304, headers=headers)
    body = await read_page(log, wanted, kinds)
    return Response(body, headers=headers, media_type="application/json")
