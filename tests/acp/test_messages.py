"""Messages, prompts and agents of new sessions, without any server."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from perdure.acp.content import Prompt, read_prompt
from perdure.acp.methods import Methods
from perdure.acp.peer import Peer
from perdure.acp.permissions import read_outcome
from perdure.acp.requests import Block, Server
from perdure.acp.rpc import Notification, Request, Response, RpcError, format_line, parse_message
from perdure.acp.slash_commands import parse_command
from perdure.acp.start import (
    add_servers,
    extend_agent,
    find_folder,
    set_confirmation,
    set_folder,
    with_folder,
)
from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent
from perdure.client.http.remote_agent import RemoteAgent
from perdure.errors import Invalid

BLOCKS: TypeAdapter[tuple[Block, ...]] = TypeAdapter(tuple[Block, ...])
SERVERS: TypeAdapter[tuple[Server, ...]] = TypeAdapter(tuple[Server, ...])

AGENT = Agent(model="openai/a", tags=("mine",))
REMOTE = RemoteAgent.model_validate({"model": "a", "agent": "b", "request": {"extends": "b"}})
ASK = Confirmation(policy="always")

MESSAGES: dict[str, Request | Notification | Response] = {
    '{"jsonrpc":"2.0","id":1,"method":"a"}': Request(1, "a", {}),
    '{"jsonrpc":"2.0","id":"x","method":"a","params":{"b":1}}': Request("x", "a", {"b": 1}),
    '{"jsonrpc":"2.0","id":null,"method":"a"}': Request(None, "a", {}),
    '{"jsonrpc":"2.0","method":"a","params":null}': Notification("a", {}),
    '{"jsonrpc":"2.0","id":1,"result":null}': Response(1, None, None),
    '{"jsonrpc":"2.0","id":1,"error":{"code":1}}': Response(1, None, {"code": 1}),
}


@pytest.mark.parametrize("line", MESSAGES)
def test_a_line_is_a_request_a_notification_or_a_response(line: str) -> None:
    assert parse_message(line.encode()) == MESSAGES[line]


@given(st.binary(max_size=60))
def test_whatever_comes_is_a_message_or_refused(line: bytes) -> None:
    assert find_code(line) in (None, -32700, -32600, -32602)


def find_code(line: bytes) -> int | None:
    """Return the code with which a line is refused; None for a message."""
    try:
        parse_message(line)
    except RpcError as error:
        return error.code
    return None


def test_deep_json_is_refused() -> None:
    with pytest.raises(RpcError) as refused:
        parse_message(b"[" * 200_000)
    assert refused.value.code == -32700


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3))
def test_a_message_is_one_line(fields: dict[str, str]) -> None:
    line = format_line({"params": fields})
    assert line.count(b"\n") == 1
    assert json.loads(line)["params"].keys() == fields.keys()


@pytest.mark.parametrize(("theirs", "ours"), [(0, 0), (1, 1), (2, 1), (65535, 1)])
async def test_the_version_is_the_newest_that_both_have(theirs: int, ours: int) -> None:
    host: Any = None  # nobody asks for it
    methods = Methods(host, Peer(host))
    answer = await methods.initialize({"protocolVersion": theirs})
    assert answer.result["protocolVersion"] == ours


def test_half_a_surrogate_is_written_as_something_that_everybody_reads() -> None:
    assert json.loads(format_line({"text": "a\ud800b"}))["text"] == "a?b"


PROMPTS: dict[str, tuple[list[dict[str, Any]], Prompt]] = {
    "texts": (
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "annotations": None}],
        Prompt("a\nb"),
    ),
    "a link without a name": (
        [{"type": "resource_link", "uri": "file:///a"}],
        Prompt("[file:///a]"),
    ),
    "an image": (
        [{"type": "image", "data": "AA==", "mimeType": "image/png"}],
        Prompt("", ("data:image/png;base64,AA==",)),
    ),
    "an embedded image": (
        [
            {
                "type": "resource",
                "resource": {"uri": "file:///a", "blob": "AA==", "mimeType": "image/png"},
            }
        ],
        Prompt("[file:///a]", ("data:image/png;base64,AA==",)),
    ),
    "an empty file": (
        [{"type": "resource", "resource": {"uri": "file:///a", "text": ""}}],
        Prompt('<resource uri="file:///a">\n\n</resource>'),
    ),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_blocks_are_one_message(name: str) -> None:
    blocks, prompt = PROMPTS[name]
    assert read_prompt(BLOCKS.validate_python(blocks)) == prompt


def test_bytes_that_are_no_image_are_refused_by_their_address() -> None:
    resource = {"uri": "file:///a.zip", "blob": "AA==", "mimeType": "application/zip"}
    [block] = BLOCKS.validate_python([{"type": "resource", "resource": resource}])
    with pytest.raises(Invalid, match=r"file:///a\.zip"):
        read_prompt([block])


@pytest.mark.parametrize(
    ("result", "choice"),
    [
        ({"outcome": {"outcome": "selected", "optionId": "allow_always"}}, "allow_always"),
        ({"outcome": {"outcome": "selected", "optionId": "odd"}}, None),
        ({"outcome": {"outcome": "cancelled"}}, None),
        ({"outcome": "selected"}, None),
        (None, None),
    ],
)
def test_only_an_option_that_was_offered_is_a_choice(result: Any, choice: str | None) -> None:
    assert read_outcome(result) == choice


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/condense", ("condense", "")),
        (" /model  a/b ", ("model", "a/b")),
        ("/models", None),
        ("/etc/passwd", None),
        ("model", None),
    ],
)
def test_what_is_no_command_is_a_message(text: str, command: tuple[str, str] | None) -> None:
    assert parse_command(text) == command


def test_a_folder_is_a_tag_beside_others_and_found_by_it() -> None:
    tags = set_folder(AGENT, "/work").tags
    assert tags == ("mine", "cwd:/work")
    assert with_folder(tags, "/other") == ("mine", "cwd:/other")
    assert with_folder(tags, "/" + "x" * 250) == ("mine",)
    assert find_folder(tags, "/workspace") == "/work"
    assert (find_folder((), "/workspace"), find_folder((), None)) == ("/workspace", "/")


def test_what_is_said_of_an_agent_of_a_gateway_is_sent_to_it() -> None:
    changed = set_confirmation(set_folder(REMOTE, "/work"), ASK)
    assert isinstance(changed, RemoteAgent)
    request = {**changed.request, "confirmation": Confirmation(**changed.request["confirmation"])}
    assert request == {"extends": "b", "tags": ["cwd:/work"], "confirmation": ASK}
    assert REMOTE.request == {"extends": "b"}
    assert extend_agent(AGENT, confirmation=ASK).confirmation == ASK


def test_servers_of_the_editor_stand_beside_the_agents_own() -> None:
    program = {"name": "My files!", "command": "/bin/a", "env": [{"name": "A", "value": "1"}]}
    http = {"type": "http", "name": "docs", "url": "http://a", "headers": []}
    servers = SERVERS.validate_python([program, http])
    both = add_servers(AGENT, servers, is_local=True)
    assert [server.name for server in both.mcp] == ["My-files", "docs"]
    assert both.mcp[0].env_values == {"A": "1"}
    assert add_servers(both, servers, is_local=True) == both
    assert [server.name for server in add_servers(AGENT, servers, is_local=False).mcp] == ["docs"]
