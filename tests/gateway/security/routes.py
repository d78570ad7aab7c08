"""A request to every route of the native API: a route without one here fails a test."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias
from uuid import UUID

import httpx

Access: TypeAlias = Literal["own", "read", "write", "owner", "key"]
"""Whose the addressed thing is.

`own` addresses nothing. A conversation, a batch or a discussion that is shared can be read or also
steered; some routes are its owner's. A `key` stands for what cannot be shared: a key, an
agent, a secret, a memory, a schedule.
"""

AGENT = {"model": {"name": "scripted:none.json"}, "tools": ["think"]}
"""An agent that never answers: no worker has its script."""

DISCUSSION = {"topic": "What?", "agents": [{"id": "ada", "agent": AGENT}]}

SCHEDULE = {"text": "Go.", "cron": ["0 8 1 1 *"], "agent": AGENT}

BACKFILL = {"since": "2026-01-01", "until": "2026-01-02"}

OF_THE_CONVERSATION = {"conversation_id": "{conversation_id}"}
"""The body that names the conversation of the ids."""

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
    ("POST", "/signals/{name}"): Request("write", {"data": {"amount": 12}, "signal_id": "one"}),
    ("POST", "/answer"): Request("write", {"text": "Blue.", "call": "call"}),
    ("POST", "/configure"): Request("write", {"changes": {"tags": ["mine"]}}),
    ("POST", "/fork"): Request("read", {}),
    ("POST", "/ask"): Request("write", {"question": "What is it about?", "max_wait": 1}),
    ("POST", "/ingest"): Request("owner"),
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

OF_DISCUSSIONS: dict[tuple[str, str], Request] = {
    ("GET", ""): Request("read"),
    ("GET", "/spec"): Request("read"),
    ("GET", "/events"): Request("read"),
    ("GET", "/stream"): Request("read", query={"follow": "false"}),
    ("GET", "/export"): Request("read"),
    ("POST", "/say"): Request("write", {"text": "Listen."}),
    ("POST", "/vote"): Request("write", {"ballot": "yes"}),
    ("POST", "/pause"): Request("write"),
    ("POST", "/resume"): Request("write"),
    ("POST", "/close"): Request("write"),
    ("GET", "/grants"): Request("owner"),
    ("PUT", "/grants/{user_id}"): Request("owner", {"access": "write"}),
    ("DELETE", "/grants/{user_id}"): Request("owner"),
}

CONVERSATION, BATCHES = "/v1/conversations/{conversation_id}", "/v1/batches/{name}"
DISCUSSIONS = "/v1/discussions/{session_id}"

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
    ("GET", "/v1/agents/{name}"): Request("key"),
    ("PUT", "/v1/agents/{name}"): Request("own", AGENT),
    ("DELETE", "/v1/agents/{name}"): Request("key"),
    ("GET", "/v1/settings"): Request("own"),
    ("PUT", "/v1/settings"): Request("own", {"agent": {"instructions": "Be brief."}}),
    ("GET", "/v1/models"): Request("own"),
    ("GET", "/v1/secrets"): Request("own"),
    ("PUT", "/v1/secrets/{name}"): Request("own", {"value": "of nobody else"}),
    ("DELETE", "/v1/secrets/{name}"): Request("key"),
    ("GET", "/v1/memories"): Request("own"),
    ("POST", "/v1/memories"): Request("own", {"text": "Tea is better."}),
    ("POST", "/v1/search/memories"): Request("own", {"query": "what is better"}),
    ("POST", "/v1/reindex/memories"): Request("own"),
    ("GET", "/v1/memories/{memory_id}"): Request("key"),
    ("DELETE", "/v1/memories/{memory_id}"): Request("key"),
    ("GET", "/v1/schedules"): Request("own"),
    ("GET", "/v1/schedules/{name}"): Request("key"),
    ("POST", "/v1/schedules/{name}"): Request("own", SCHEDULE),
    ("DELETE", "/v1/schedules/{name}"): Request("key"),
    ("POST", "/v1/schedules/{name}/pause"): Request("key", {}),
    ("POST", "/v1/schedules/{name}/resume"): Request("key", {}),
    ("POST", "/v1/schedules/{name}/trigger"): Request("key"),
    ("POST", "/v1/schedules/{name}/backfill"): Request("key", BACKFILL),
    ("GET", "/v1/webhooks"): Request("own"),
    ("POST", "/v1/webhooks"): Request("own", {"url": "https://8.8.8.8/hooks"}),
    ("GET", "/v1/webhooks/{webhook_id}"): Request("key"),
    ("DELETE", "/v1/webhooks/{webhook_id}"): Request("key"),
    ("POST", "/v1/webhooks/{webhook_id}/rotate"): Request("key"),
    ("POST", "/v1/webhooks/{webhook_id}/test"): Request("key"),
    ("GET", "/v1/addresses"): Request("own"),
    ("POST", "/v1/addresses"): Request("key", OF_THE_CONVERSATION),
    ("DELETE", "/v1/addresses/{address_id}"): Request("key"),
    ("POST", "/v1/posts/{address_id}/{secret}"): Request("key", {"text": "Tell me."}),
    ("POST", "/v1/conversations"): Request("own", {"text": "Hello?", "agent": AGENT}),
    ("GET", "/v1/conversations"): Request("own"),
    ("GET", "/v1/feed"): Request("own"),
    ("GET", "/v1/shared"): Request("own"),
    ("GET", "/v1/shared/batches"): Request("own"),
    ("POST", "/v1/batches"): Request("own", {"batch": BATCH, "samples": [{"input": "1 + 1"}]}),
    ("GET", "/v1/batches"): Request("own"),
    ("POST", "/v1/discussions"): Request("own", {"discussion": DISCUSSION}),
    ("GET", "/v1/discussions"): Request("own"),
    ("GET", "/v1/shared/discussions"): Request("own"),
    **{(method, CONVERSATION + path): it for (method, path), it in OF_CONVERSATIONS.items()},
    **{(method, BATCHES + path): it for (method, path), it in OF_BATCHES.items()},
    **{(method, DISCUSSIONS + path): it for (method, path), it in OF_DISCUSSIONS.items()},
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
    session_id: str = "no-such-discussion"
    memory_id: str = str(UUID(int=0))
    webhook_id: str = "f" * 16
    address_id: str = "e" * 16
    secret: str = "x" * 43


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
    body = it.body
    if body == OF_THE_CONVERSATION:
        body = {"conversation_id": ids.conversation_id}
    response = await client.request(method, path.format(**names), json=body, params=query)
    text = response.text
    for name, value in names.items():
        text = text.replace(value, f"({name})")
    return Answer(response.status_code, response.headers.get("content-type", ""), text)
