"""Parsers of options, arguments and files of the command line."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure.agent.policies import Confirmation
from perdure.agent.spec import CustomCondenser, McpServer, ModelSpec
from perdure.cli.agent_options import (
    build_agent,
    check_agent_options,
    parse_confirmation,
    read_servers,
)
from perdure.cli.arguments import load_images, parse_assignments, parse_moment
from perdure.cli.options import CONDENSER_KINDS, AgentOptions
from perdure.errors import Invalid

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)


def mcp_file(folder: Path, **servers: Any) -> Path:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_mcp_servers_are_read_as_other_agents_write_them(tmp_path: Path) -> None:
    path = mcp_file(
        tmp_path,
        files={"command": "npx", "args": ["-y", "files"], "env": {"KEY": "${FILES_KEY}"}},
        search={"type": "http", "url": "https://x.org", "headers": {"Authorization": "${S}"}},
    )
    assert build_agent(AgentOptions(mcp=path), ModelSpec(name="m")).mcp == (
        McpServer(name="files", command="npx", args=("-y", "files"), env={"KEY": "FILES_KEY"}),
        McpServer(name="search", url="https://x.org", headers={"Authorization": "S"}),
    )


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ({"command": "x", "env": {"KEY": "sk-secret"}}, "env.KEY of 'it' is written out"),
        ({"url": "u", "headers": {"A": "Bearer ${T}"}}, "headers.A of 'it' is written out"),
        ({"command": "x", "url": "u"}, "a `command` to start or a `url`"),
        ({"args": []}, "a `command` to start or a `url`"),
        ({"command": "x", "colour": "red"}, "'it' has no 'colour'; it may have args"),
        ({"command": "x", "args": "one"}, "'it' at args"),
        ({"type": "sse", "url": "u"}, "unknown type"),
        ("x", "is not an object"),
    ],
)
def test_an_impossible_mcp_server_is_refused_by_name(
    tmp_path: Path, server: Any, message: str
) -> None:
    with pytest.raises(Invalid, match=re.escape(message)) as refused:
        read_servers(mcp_file(tmp_path, it=server))
    assert "sk-secret" not in f"{refused.value} {refused.value.hint}"
    assert str(tmp_path) in str(refused.value)


def test_an_unusable_mcp_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("{")
    (tmp_path / "other").write_text('{"servers": {}}')
    for name, message in (("no", "cannot be read"), ("text", "JSON"), ("other", "mcpServers")):
        with pytest.raises(Invalid, match=message):
            read_servers(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90m", "2030-01-31T13:30:00.000000"),
        ("1.5h", "2030-01-31T13:30:00.000000"),
        ("2d", "2030-02-02T12:00:00.000000"),
        ("2030-01-31T14:00", "2030-01-31T14:00:00.000000"),
        ("2030-01-31T14:00+01:00", "2030-01-31T13:00:00.000000"),
    ],
)
def test_a_deadline_is_a_duration_from_now_or_a_date(text: str, at: str) -> None:
    assert parse_moment(text, NOW) == at
    assert parse_moment(text, NOW.astimezone(tz=None)) == at


@pytest.mark.parametrize("text", ["soon", "", "2030-01-31T11:00", "-1h", "9999999999999d"])
def test_a_deadline_in_the_past_or_unreadable_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_moment(text, NOW + timedelta())


def test_a_policy_may_name_the_lowest_risk_that_needs_approval() -> None:
    assert parse_confirmation("always") == Confirmation(policy="always")
    assert parse_confirmation("risky:medium") == Confirmation(policy="risky", threshold="MEDIUM")
    for text in ("sometimes", "always:LOW", "risky:SOME", ""):
        with pytest.raises(Invalid, match="never, always, risky"):
            parse_confirmation(text)


@pytest.mark.parametrize("kind", CONDENSER_KINDS)
def test_every_kind_of_condenser_can_be_chosen(kind: str) -> None:
    assert build_agent(AgentOptions(condenser=kind), ModelSpec(name="m")).condenser.kind == kind


def test_a_condenser_of_ones_own_is_chosen_by_reference_and_others_are_refused() -> None:
    options = AgentOptions(condenser="my_package.condensers:forget")
    condenser = build_agent(options, ModelSpec(name="m")).condenser
    assert condenser == CustomCondenser(function="my_package.condensers:forget")
    with pytest.raises(Invalid, match="There is no condenser 'forgetful'"):
        build_agent(AgentOptions(condenser="forgetful"), ModelSpec(name="m"))


def test_assignments_have_nested_keys_and_json_values() -> None:
    values = ["limits.max_iterations=50", "limits.max_budget=1.5", "model=openai/x", 'tags=["a"]']
    assert parse_assignments(values) == {
        "limits": {"max_iterations": 50, "max_budget": 1.5},
        "model": "openai/x",
        "tags": ["a"],
    }
    for bad in (["limits"], ["=1"], ["a..b=1"], ["a=1", "a=2"], ["a=1", "a.b=2"]):
        with pytest.raises(Invalid):
            parse_assignments(bad)


def test_an_image_is_an_address_or_an_encoded_file(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(b"\x89PNG")
    values = ["https://x.org/cat.png", str(tmp_path / "dot.png")]
    assert load_images(values) == ("https://x.org/cat.png", "data:image/png;base64,iVBORw==")
    for bad in ("notes.txt", str(tmp_path / "no.png")):
        with pytest.raises(Invalid, match=re.escape(bad)):
            load_images([bad])


def test_secrets_are_given_by_name() -> None:
    options = AgentOptions(secrets=["API_TOKEN", "_db"])
    assert build_agent(options, ModelSpec(name="m")).secrets == ("API_TOKEN", "_db")


def test_a_secret_given_by_value_is_refused() -> None:
    with pytest.raises(Invalid, match="is no name of a secret"):
        check_agent_options(AgentOptions(secrets=["sk-0123"]))
