"""Embedding models: functions of one's own, and those of litellm against a real server."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from perdure.errors import Invalid, Unreachable
from perdure.memory.embedding import Embedder
from perdure.models.embedding import load_embedder

NAME = f"python:{__name__}"


def count_letters(texts: list[str]) -> list[list[int]]:
    return [[text.count("a"), text.count("b")] for text in texts]


async def count_slowly(texts: list[str]) -> list[list[int]]:
    await asyncio.sleep(0)
    return count_letters(texts)


def forget_one(texts: list[str]) -> list[list[int]]:
    return count_letters(texts[1:])


def vary(texts: list[str]) -> list[list[int]]:
    return [[1] * (nth + 1) for nth, _ in enumerate(texts)]


def fail(texts: list[str]) -> list[list[int]]:
    raise RuntimeError(f"no room for {len(texts)} texts")


def load(name: str, api_base: str | None = None) -> Embedder:
    embedder = load_embedder(name, api_base)
    assert embedder is not None
    return embedder


@pytest.mark.parametrize("function", ["count_letters", "count_slowly"])
async def test_a_function_of_one_s_own_makes_vectors(function: str) -> None:
    embedder = load(f"{NAME}:{function}")
    assert await embedder.embed(["aab", "b"]) == [[2.0, 1.0], [0.0, 1.0]]
    assert embedder.name == f"{NAME}:{function}"


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        ("forget_one", "no vector for each text"),
        ("vary", "no vector for each text"),
        ("fail", "no room for 2 texts"),
    ],
)
async def test_a_function_that_fails_is_named(function: str, fault: str) -> None:
    with pytest.raises(Invalid, match=fault) as refused:
        await load(f"{NAME}:{function}").embed(["a", "b"])
    assert f"{NAME}:{function}" in str(refused.value)
    assert "[memory]" in refused.value.hint


def test_a_function_that_does_not_exist_is_named() -> None:
    with pytest.raises(Invalid, match="module 'nowhere' cannot be found"):
        load("python:nowhere:embed")


async def test_a_provider_without_a_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(Invalid, match="set OPENAI_API_KEY"):
        await load("openai/text-embedding-3-small").embed(["a"])


@pytest_asyncio.fixture
async def server() -> AsyncIterator[tuple[str, list[Any]]]:
    """A server of embeddings in OpenAI's format, which counts letters; and its requests."""
    requests: list[Any] = []

    async def answer(request: Request) -> JSONResponse:
        body = json.loads(await request.body())
        requests.append(body)
        if body["model"] == "broken":
            return JSONResponse({"error": {"message": "out of order"}}, 503)
        data = [
            {"object": "embedding", "index": nth, "embedding": vector}
            for nth, vector in enumerate(count_letters(body["input"]))
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return JSONResponse({"object": "list", "data": data, "model": "m", "usage": usage})

    app = Starlette(routes=[Route("/v1/embeddings", answer, methods=["POST"])])
    config = uvicorn.Config(app, port=0, log_level="critical", timeout_graceful_shutdown=0)
    serving = uvicorn.Server(config)
    task = asyncio.create_task(serving.serve())
    while not serving.started:
        await asyncio.sleep(0.01)
    [listener] = serving.servers[0].sockets
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", requests
    serving.should_exit = True
    await task


@pytest.mark.long
async def test_a_server_of_embeddings_is_asked_through_litellm(
    server: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-the-test")
    url, requests = server
    assert await load("openai/letters", url).embed(["aab", "b"]) == [[2.0, 1.0], [0.0, 1.0]]
    assert requests[0]["input"] == ["aab", "b"]
    with pytest.raises(Unreachable, match="out of order") as failed:
        await load("openai/broken", url).embed(["a"])
    assert "secret-of-the-test" not in str(failed.value)
    with pytest.raises(Unreachable):
        await load("openai/letters", "http://127.0.0.1:9/v1").embed(["a"])
