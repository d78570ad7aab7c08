"""A request to every route of the native API: a route without one here fails a test."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import httpx

Access: TypeAlias = Literal["own", "read", "write", "owner", "key"]
"""Whose the addressed thing is.

`own` addresses nothing. A conversation or a batch that is shared can be read or also steered; some
routes are its owner's. Keys cannot be shared.
"""

AGENT = {"model": {"name": "scripted:none.json"}, "tools": ["think"]}
"""An agent that never answers: no worker has its script."""

BATCH = {"name": "sums", "agent": AGENT, "scorers": ["match"]}


@dataclass(frozen=True)
class Request:
    """The request to a route, beside the ids in its path; the query may name them too."""

    access: Access
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)


OF_CONVERSATIONS: dict[tuple[str, str], Request] = {
    ("GET", ""): Request("read"),
    ("PATCH", ""): Request("write", {"title": "Mine"}),
    ("DELETE", ""): Request("owner"),
    ("POST", "/messages"): Request("write", {"text": "Tell me."}),
    ("POST", "/pause"): Request("write"),
    ("POST", "/resume"): Request("write"),
    ("POST", "/interrupt"): Request("write"),
    ("POST", "/condense"): Request("write"),
    ("POST", "/close"): Request("write"),
    ("POST", "/reopen"): Request("write"),
    ("POST", "/respond"): Request("write", {"accept": True, "calls": ["call"]}),
    ("POST", "/configure"): Request("write", {"changes": {"tags": ["mine"]}}),
    ("POST", "/fork"): Request("read", {}),
    ("POST", "/ask"): Request("write", {"question": "What is it about?", "max_wait": 1}),
    ("GET", "/events"): Request("read"),
    ("GET", "/trouble"): Request("read"),
    ("GET", "/news"): Request("read", query={"next_seq": "0"}),
    ("GET", "/state"): Request("read"),
    ("GET", "/turn"): Request("read", query={"wait": "1"}),
    ("GET", "/values"): Request("read"),
    ("GET", "/export"): Request("read"),
    ("GET", "/files"): Request("read"),
    ("GET", "/files/{path}"): Request("read"),
    ("GET", "/diff"): Request("read"),
    ("GET", "/blobs/{sha256}"): Request("read"),
    ("GET", "/grants"): Request("owner"),
    ("PUT", "/grants/{user_id}"): Request("owner", {"access": "write"}),
    ("DELETE", "/grants/{user_id}"): Request("owner"),
    ("GET", "/stream"): Request("read", query={"follow": "false"}),
}

OF_BATCHES: dict[tuple[str, str], Request] = {
    ("GET", ""): Request("read"),
    ("GET", "/spec"): Request("read"),
    ("POST", "/pause"): Request("write"),
    ("POST", "/resume"): Request("write"),
    ("POST", "/retune"): Request("write", {"concurrency": 2}),
    ("POST", "/retry"): Request("owner", {}),
    ("GET", "/results"): Request("read"),
    ("GET", "/result"): Request("read", query={"sample": "violet"}),
    ("GET", "/samples"): Request("read", query={"sample_set": "{sample_set}"}),
    ("GET", "/summary"): Request("read"),
    ("GET", "/report"): Request("read"),
    ("GET", "/comparison"): Request("read", query={"other": "{name}", "other_owner": "anna"}),
    ("GET", "/grants"): Request("owner"),
    ("PUT", "/grants/{user_id}"): Request("owner", {"access": "write"}),
    ("DELETE", "/grants/{user_id}"): Request("owner"),
}

CONVERSATION, BATCHES = "/v1/conversations/{conversation_id}", "/v1/batches/{name}"

REQUESTS: dict[tuple[str, str], Request] = {
    ("GET", "/health"): Request("own"),
    ("GET", "/ready"): Request("own"),
    ("GET", "/v1/me"): Request("own"),
    ("GET", "/v1/keys"): Request("own"),
    ("POST", "/v1/keys"): Request("own", {"name": "another", "scopes": ["read"]}),
    ("DELETE", "/v1/keys/{key_id}"): Request("key"),
    ("POST", "/v1/login"): Request("own", {"code": "none"}),
    ("POST", "/v1/logout"): Request("own"),
    ("POST", "/v1/tickets"): Request("own"),
    ("GET", "/v1/agents"): Request("own"),
    ("GET", "/v1/models"): Request("own"),
    ("POST", "/v1/conversations"): Request("own", {"text": "Hello?", "agent": AGENT}),
    ("GET", "/v1/conversations"): Request("own"),
    ("GET", "/v1/feed"): Request("own"),
    ("GET", "/v1/shared"): Request("own"),
    ("GET", "/v1/shared/batches"): Request("own"),
    ("POST", "/v1/batches"): Request("own", {"batch": BATCH, "samples": [{"input": "1 + 1"}]}),
    ("GET", "/v1/batches"): Request("own"),
    **{(method, CONVERSATION + path): it for (method, path), it in OF_CONVERSATIONS.items()},
    **{(method, BATCHES + path): it for (method, path), it in OF_BATCHES.items()},
}
"""By method and path, as the OpenAPI description has them."""

SOCKETS = {f"{CONVERSATION}/socket"}

STREAMS = {("GET", "/v1/feed")}
"""Requests whose answers do not end."""


class Ids(NamedTuple):
    """The ids of one user's things."""

    conversation_id: str
    name: str
    key_id: str
    path: str
    sha256: str
    user_id: str = "carl"
    sample_set: str = "0" * 16


class Answer(NamedTuple):
    """An answer without the ids that were asked for."""

    status: int
    kind: str
    text: str


async def send(
    client: httpx.AsyncClient, route: tuple[str, str], ids: Ids, owner: str | None = None
) -> Answer:
    """Send the request to a route, with ids that may be another's."""
    method, path = route
    it, names = REQUESTS[route], ids._asdict()
    asked = {**it.query, **({"owner": owner} if owner else {})}
    query = {key: value.format(**names) for key, value in asked.items()}
    response = await client.request(method, path.format(**names), json=it.body, params=query)
    text = response.text
    for name, value in names.items():
        text = text.replace(value, f"({name})")
    return Answer(response.status_code, response.headers.get("content-type", ""), text)
