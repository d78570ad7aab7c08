"""The routes of the page: its files, how long they are kept, and what they may do."""

import gzip
import re
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from starlette.applications import Starlette

from perdure.gateway.page.routes import page_routes

VIEWS = (
    "/",
    "/new",
    "/conversations/01a20dd5-34bc-7385-bafd-6ea6a1e795ea",
    "/batches",
    "/discussions",
    "/schedules",
    "/webhooks",
    "/agents",
    "/memory",
    "/keys",
)


@pytest_asyncio.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    app = Starlette(routes=page_routes("http://127.0.0.1:8233/namespaces/default/workflows"))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as opened:
        yield opened


async def find_script(client: httpx.AsyncClient) -> str:
    """Return the address of the page's first script."""
    match = re.search(r'src="(/page/[0-9a-f]+/main\.js)"', (await client.get("/")).text)
    assert match is not None
    return match[1]


@pytest.mark.parametrize("view", VIEWS)
async def test_each_view_is_the_index_which_a_browser_asks_for_each_time(
    client: httpx.AsyncClient, view: str
) -> None:
    response = await client.get(view)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert "{digest}" not in response.text
    assert "http://127.0.0.1:8233/namespaces/default/workflows" in response.text


async def test_a_file_is_kept_for_good_under_its_digest(client: httpx.AsyncClient) -> None:
    response = await client.get(await find_script(client))
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in response.headers["cache-control"]


async def test_a_file_under_another_digest_is_not_served(client: httpx.AsyncClient) -> None:
    """A browser with the page of another version gets no file of this one."""
    address = re.sub(r"/page/[0-9a-f]+/", "/page/0123456789abcdef/", await find_script(client))
    response = await client.get(address)
    assert response.status_code == 404
    assert response.headers["cache-control"] == "no-store"


async def test_what_a_browser_has_is_not_sent_again(client: httpx.AsyncClient) -> None:
    etag = (await client.get("/")).headers["etag"]
    response = await client.get("/", headers={"If-None-Match": etag})
    assert response.status_code == 304
    assert response.content == b""


async def test_files_are_compressed_for_whom_it_suits(client: httpx.AsyncClient) -> None:
    address = await find_script(client)
    plain = await client.get(address, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    async with client.stream("GET", address, headers={"Accept-Encoding": "gzip"}) as response:
        assert response.headers["content-encoding"] == "gzip"
        raw = b"".join([part async for part in response.aiter_raw()])
    assert gzip.decompress(raw) == plain.content


@pytest.mark.parametrize(
    "path",
    [
        "vendor/marked/LICENSE",
        "vendor/README.md",
        "index.html",
        "..%2ffiles.py",
        "%2e%2e%2ffiles.py",
    ],
)
async def test_nothing_else_is_served(client: httpx.AsyncClient, path: str) -> None:
    folder = (await find_script(client)).removesuffix("main.js")
    assert (await client.get(folder + path)).status_code == 404


async def test_every_response_has_the_policy(client: httpx.AsyncClient) -> None:
    script = await find_script(client)
    for address in ("/", script, script.replace("main", "absent")):
        response = await client.get(address)
        policy = response.headers["content-security-policy"].split("; ")
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "connect-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert not any("unsafe" in part or "*" in part or "http" in part for part in policy)
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
