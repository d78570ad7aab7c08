"""`/models`: agents, by their names."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from perdure.gateway.openai.agents import list_models, model_object, require_model
from perdure.gateway.openai.call import open_call


async def list_all(request: Request) -> Response:
    call = await open_call(request, "read")
    return JSONResponse({"object": "list", "data": await list_models(call)})


async def get_model(request: Request) -> Response:
    call = await open_call(request, "read")
    name: str = request.path_params["name"]
    return JSONResponse(model_object(name, await require_model(call, name)))


ROUTES = [
    Route("/models", list_all, methods=["GET"]),
    Route("/models/{name}", get_model, methods=["GET"]),
]
