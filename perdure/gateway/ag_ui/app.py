"""The application that serves AG-UI: an agent at an address, a run a request."""

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure.errors import ClientError
from perdure.gateway.ag_ui.begin import begin
from perdure.gateway.ag_ui.call import open_call
from perdure.gateway.ag_ui.stream import stream_run
from perdure.gateway.errors import BodyRefused, Refused, describe_failure, problem_response
from perdure.gateway.gateway import Gateway
from perdure.storage.errors import StoreError

PATH = "/ag-ui"


def create_ag_ui_app(gateway: Gateway) -> Starlette:
    """Build the application that serves the agents of a gateway below `PATH`."""
    app = Starlette(
        routes=[Route("/{agent}", run_agent, methods=["POST"])],
        exception_handlers={
            Refused: _answer_expected,
            ClientError: _answer_expected,
            StoreError: _answer_expected,
            ValidationError: _answer_invalid,
            HTTPException: _answer_http_error,
        },
    )
    app.router.redirect_slashes = False
    app.state.gateway = gateway
    return app


async def run_agent(request: Request) -> Response:
    """Run an agent in a thread: begin a turn, or join the one that is under way."""
    call = await open_call(request)
    return await stream_run(call, await begin(call))


async def _answer_expected(_: Request, error: Exception) -> Response:
    return problem_response(*describe_failure(error))


async def _answer_invalid(_: Request, error: Exception) -> Response:
    """Answer a body that does not fit; nothing of its values is repeated."""
    assert isinstance(error, ValidationError)
    first = error.errors(include_input=False, include_url=False)[0]
    field = ".".join(map(str, first["loc"])) or "The body"
    return problem_response(422, "invalid", f"{field}: {first['msg']}.")


async def _answer_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, BodyRefused):
        return problem_response(*describe_failure(error.cause))
    match error.status_code:
        case 404:
            detail = "There is nothing here: POST to an agent, /ag-ui/NAME."
            return problem_response(404, "not_found", detail)
        case 405:
            detail = "This address takes POST."
            return problem_response(405, "method_not_allowed", detail, headers=error.headers)
        case 413:
            return problem_response(413, "too_large", str(error.detail))
        case status:
            return problem_response(status, "refused", str(error.detail), headers=error.headers)
