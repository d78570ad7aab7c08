"""Routes of OpenHands' client that read the events of a conversation."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from perdure.gateway.openhands.addressing import find_call
from perdure.gateway.openhands.answers import answer, parse, refuse
from perdure.gateway.openhands.last_answer import read_last_answer
from perdure.gateway.openhands.search import EventFilter, EventSearch

CONVERSATION = "/api/conversations/{conversation_id}"


async def search_events(request: Request) -> Response:
    """List events, page by page."""
    call = await find_call(request, "read")
    wanted = parse(EventSearch, dict(request.query_params), "query")
    body = await call.door.pages.read_page(call.log, call.native, wanted)
    return Response(body, media_type="application/json")


async def count_events(request: Request) -> Response:
    """Count events."""
    call = await find_call(request, "read")
    wanted = parse(EventFilter, dict(request.query_params), "query")
    return JSONResponse(await call.door.pages.count(call.log, call.native, wanted))


async def show_event(request: Request) -> Response:
    """Show an event by its id."""
    call = await find_call(request, "read")
    found = await call.door.pages.find(call.log, call.native, request.path_params["event_id"])
    if found is None:
        raise refuse(404, "The conversation has no event of this id.")
    return Response(found.body, media_type="application/json")


async def show_response(request: Request) -> Response:
    """Show the last words of the agent; none if it has said nothing yet."""
    call = await find_call(request, "read")
    return answer({"response": await read_last_answer(call.log)})


ROUTES = [
    Route(f"{CONVERSATION}/events/search", search_events, methods=["GET"]),
    Route(f"{CONVERSATION}/events/count", count_events, methods=["GET"]),
    Route(f"{CONVERSATION}/events/{{event_id}}", show_event, methods=["GET"]),
    Route(f"{CONVERSATION}/agent_final_response", show_response, methods=["GET"]),
]
