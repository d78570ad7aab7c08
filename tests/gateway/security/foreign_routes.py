"""A request to every route for clients of others: a route without one here fails a test."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import httpx

Access: TypeAlias = Literal["anybody", "own", "addressed", "refused"]
"""Who may ask: `own` addresses nothing of a user's, `addressed` what its path or body names.

What is `refused` is served to nobody.
"""

OPENAI, OPENHANDS, AG_UI = "/openai/v1", "/openhands", "/ag-ui"

AGENT = "sayer"
"""The name of an agent of the installation, which answers at once."""


@dataclass(frozen=True)
class Request:
    """The request to a route, beside the ids in its path; body and query may name them too."""

    access: Access
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)


class ForeignIds(NamedTuple):
    """The ids of one conversation, as clients of others have them."""

    conversation_id: str
    event_id: str
    model: str

    @property
    def names(self) -> dict[str, str]:
        digits = self.conversation_id.replace("-", "")
        event = self.event_id
        openai = {"conv": f"conv_{digits}", "response": f"resp_{digits}_1", "item": f"msg_{event}"}
        return {**self._asdict(), **openai}


RESPONSE = {"model": AGENT, "input": "Tell me."}

START = {
    "agent": {"kind": "Agent", "llm": {"model": "{model}", "usage_id": "agent"}, "tools": []},
    "workspace": {"kind": "LocalWorkspace", "working_dir": "workspace"},
    "max_iterations": 5,
    "tags": {"team": "red"},
}

OPENAI_ROUTES = {
    ("GET", "/models"): Request("own"),
    ("GET", f"/models/{AGENT}"): Request("own"),
    ("POST", "/chat/completions"): Request(
        "own", {"model": AGENT, "messages": [{"role": "user", "content": "Tell me."}]}
    ),
    ("POST", "/responses"): Request("addressed", {**RESPONSE, "conversation": "{conv}"}),
    ("GET", "/responses/{response}"): Request("addressed"),
    ("DELETE", "/responses/{response}"): Request("addressed"),
    ("POST", "/responses/{response}/cancel"): Request("addressed"),
    ("GET", "/responses/{response}/input_items"): Request("addressed"),
    ("POST", "/conversations"): Request("own", {"metadata": {"team": "red"}}),
    ("GET", "/conversations/{conv}"): Request("addressed"),
    ("POST", "/conversations/{conv}"): Request("addressed", {"metadata": {"team": "red"}}),
    ("DELETE", "/conversations/{conv}"): Request("addressed"),
    ("GET", "/conversations/{conv}/items"): Request("addressed"),
    ("GET", "/conversations/{conv}/items/{item}"): Request("addressed"),
}

MESSAGE = {"role": "user", "content": [{"type": "text", "text": "Hi."}], "run": True}

OF_A_CONVERSATION = {
    ("GET", ""): Request("addressed"),
    ("PATCH", ""): Request("addressed", {"title": "Mine", "tags": {"team": "red"}}),
    ("DELETE", ""): Request("addressed"),
    ("POST", "/fork"): Request("addressed", {"title": "Mine"}),
    ("GET", "/events/search"): Request("addressed", query={"limit": "5"}),
    ("GET", "/events/count"): Request("addressed"),
    ("GET", "/events/{event_id}"): Request("addressed"),
    ("GET", "/agent_final_response"): Request("addressed"),
    ("POST", "/events"): Request("addressed", MESSAGE),
    ("POST", "/run"): Request("addressed"),
    ("POST", "/events/respond_to_confirmation"): Request("addressed", {"accept": True}),
    ("POST", "/pause"): Request("addressed"),
    ("POST", "/interrupt"): Request("addressed"),
    ("POST", "/condense"): Request("addressed"),
    ("POST", "/confirmation_policy"): Request("addressed", {"policy": {"kind": "NeverConfirm"}}),
    ("POST", "/security_analyzer"): Request("addressed", {"security_analyzer": None}),
    ("POST", "/ask_agent"): Request("addressed", {"question": "What is it about?"}),
    ("POST", "/secrets"): Request("addressed", {"secrets": {"TOKEN": "a-value-of-mine"}}),
    **{
        ("POST", f"/{name}"): Request("addressed", {})
        for name in ("navigate", "load_plugin", "switch_llm", "switch_profile")
    },
    **{
        (method, f"/{name}{rest}"): Request("addressed", {} if method == "POST" else None)
        for name in ("goal", "children", "runtime")
        for rest in ("", "/rest")
        for method in ("GET", "POST")
    },
}

OPENHANDS_ROUTES = {
    **{("GET", path): Request("anybody") for path in ("/alive", "/health", "/ready")},
    ("GET", "/server_info"): Request("anybody"),
    **{
        (method, f"/api/{kind}/rest"): Request("refused")
        for kind in ("bash", "file", "git")
        for method in ("GET", "POST")
    },
    ("POST", "/api/conversations"): Request("own", START),
    ("GET", "/api/conversations"): Request("own", query={"ids": "{conversation_id}"}),
    ("GET", "/api/conversations/search"): Request("own"),
    ("GET", "/api/conversations/count"): Request("own"),
    **{
        (method, f"/api/conversations/{{conversation_id}}{path}"): request
        for (method, path), request in OF_A_CONVERSATION.items()
    },
}

RUN = {
    "threadId": "{conversation_id}",
    "runId": "1",
    "state": {"tab": "sums"},
    "messages": [
        {"id": "s", "role": "system", "content": "Be brief."},
        {"id": "m", "role": "user", "content": [{"type": "text", "text": "Tell me."}]},
    ],
    "context": [{"description": "The page", "value": "/sums"}],
    "forwardedProps": {},
}
"""A thread is the user's own, whoever else has a conversation of its name."""

AG_UI_ROUTES = {("POST", f"/{AGENT}"): Request("own", RUN)}

FOREIGN_ROUTES: dict[tuple[str, str], Request] = {
    **{(method, f"{OPENAI}{path}"): it for (method, path), it in OPENAI_ROUTES.items()},
    **{(method, f"{OPENHANDS}{path}"): it for (method, path), it in OPENHANDS_ROUTES.items()},
    **{(method, f"{AG_UI}{path}"): it for (method, path), it in AG_UI_ROUTES.items()},
}


def fill(value: Any, names: Mapping[str, str]) -> Any:
    """Return JSON with ids in place of their names in braces."""
    match value:
        case str():
            for name, text in names.items():
                value = value.replace(f"{{{name}}}", text)
            return value
        case dict():
            return {key: fill(item, names) for key, item in value.items()}
        case list():
            return [fill(item, names) for item in value]
        case _:
            return value


async def send(
    client: httpx.AsyncClient, route: tuple[str, str], ids: ForeignIds
) -> tuple[int, str]:
    """Send the request to a route; return status and text of the answer without the ids."""
    method, path = route
    it, names = FOREIGN_ROUTES[route], ids.names
    response = await client.request(
        method, fill(path, names), json=fill(it.body, names), params=fill(dict(it.query), names)
    )
    text = response.text
    for name, value in sorted(names.items(), key=lambda pair: -len(pair[1])):
        text = text.replace(value, f"({name})")
    return response.status_code, text
