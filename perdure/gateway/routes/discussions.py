"""Discussions: start, read, follow, take part in and steer them."""

from contextlib import AsyncExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from perdure.api.discussions import (
    Contributed,
    Discussion,
    DiscussionEvents,
    Say,
    StartDiscussion,
    Vote,
)
from perdure.api.discussions import Discussions as DiscussionList
from perdure.client.discussion.discussions import Discussions
from perdure.gateway.agents.own_secrets import agent_user
from perdure.gateway.callers import COSTLY, Reader, Writer
from perdure.gateway.credentials import credential_checks
from perdure.gateway.discussion_calls import ToRead, ToWrite
from perdure.gateway.following.followers import TooManyClients
from perdure.gateway.routes.stream import FrameStream, refuse_client
from perdure.gateway.views.discussions import (
    export_discussion,
    parse_request,
    show_all,
    show_discussion,
)
from perdure.storage.discussions.folder import list_sessions

router = APIRouter(prefix="/v1/discussions", tags=["discussions"])

EXPORT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/x-ndjson": {}, "text/html": {}, "application/zip": {}},
        "description": "The file.",
    }
}

After = Annotated[int, Query(ge=0, le=2**53, description="The last sequence that is known.")]


@router.post("", status_code=201, responses={200: {"model": Discussion}}, dependencies=COSTLY)
async def start_discussion(body: StartDiscussion, caller: Writer, response: Response) -> Discussion:
    """Start a discussion; the answer is 200 where it runs already."""
    user = agent_user(caller.client)
    spec = await parse_request(body.discussion, caller.gateway.agents, user)
    handle = await Discussions.from_client(caller.client).start(spec, body.id)
    response.status_code = 200 if handle.attached else 201
    response.headers["Location"] = f"/v1/discussions/{handle.id}"
    return await show_discussion(handle)


@router.get("")
async def list_discussions(
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> DiscussionList:
    """List the discussions of the user by id."""
    discussions = Discussions.from_client(caller.client)
    sessions = await list_sessions(caller.client.store, caller.client.user_id)
    ids = [it for it in sorted(sessions) if cursor is None or it > cursor]
    items = await show_all(map(discussions.get, ids[:limit]))
    more = ids[limit - 1] if len(ids) > limit else None
    return DiscussionList(items=tuple(items), next_cursor=more)


@router.get("/{session_id}")
async def get_discussion(discussion: ToRead) -> Discussion:
    """Show a discussion with its status."""
    return await show_discussion(discussion)


@router.get("/{session_id}/spec")
async def get_spec(discussion: ToRead) -> dict[str, Any]:
    """Show the spec of a discussion, with the keys of its file."""
    return (await discussion.spec()).model_dump(mode="json")


@router.get("/{session_id}/events")
async def list_events(
    discussion: ToRead, after: After = 0, limit: Annotated[int, Query(ge=1, le=100)] = 100
) -> DiscussionEvents:
    """List the events that follow a sequence, pruned ones too, the first of them."""
    events = await discussion.read(after, limit)
    items = tuple(event.to_json() for event in events)
    return DiscussionEvents(items=items, end=await discussion.end())


@router.get("/{session_id}/stream", response_class=FrameStream, status_code=200)
async def stream_frames(
    caller: Reader,
    discussion: ToRead,
    after: After = 0,
    last_event_id: Annotated[int | None, Header(ge=0, le=2**53)] = None,
    follow: Annotated[bool, Query(description="Whether to go on after what is there now.")] = True,
) -> FrameStream:
    """Stream the events after a sequence, `Last-Event-ID` or else `after`, and the status."""
    followers = caller.gateway.discussions
    cursor = after if last_event_id is None else last_event_id
    async with AsyncExitStack() as stack:
        stack.enter_context(caller.gateway.connections.hold(caller.client.user_id))
        try:
            client = stack.enter_context(followers.attach(discussion, credential_checks(caller)))
        except TooManyClients as error:
            raise refuse_client(error) from error
        frames = client.frames(cursor, lasts=follow)
        return FrameStream(frames, stack.pop_all(), followers.limits)


@router.post("/{session_id}/say")
async def say(body: Say, discussion: ToWrite) -> Contributed:
    """Say something in one's own name, and wait until it is in the log."""
    place = await discussion.say(body.text, body.speaker, body.reply_to, body.id)
    return Contributed(sequence=place)


@router.post("/{session_id}/vote")
async def vote(body: Vote, discussion: ToWrite) -> Contributed:
    """Cast a ballot in the present or next vote of the phase."""
    place = await discussion.vote(body.ballot, body.speaker, body.reason, body.id)
    return Contributed(sequence=place)


@router.post("/{session_id}/pause", status_code=204)
async def pause(discussion: ToWrite) -> None:
    """Pause between two steps, and pause the agents that speak."""
    await discussion.pause()


@router.post("/{session_id}/resume", status_code=204)
async def resume(discussion: ToWrite) -> None:
    """Go on."""
    await discussion.resume()


@router.post("/{session_id}/close", status_code=204)
async def close(discussion: ToWrite) -> None:
    """End the discussion for good; its log stays."""
    await discussion.close()


@router.get(
    "/{session_id}/export",
    response_class=Response,
    responses=EXPORT_RESPONSES,
    dependencies=COSTLY,
)
async def export(
    discussion: ToRead, format: Annotated[str, Query(min_length=1, max_length=64)] = "events"
) -> Response:
    """Export the discussion: `events`, an event a line; `html`; or `results`, a zip archive with
    the messages of each agent."""
    return await export_discussion(discussion, format)
