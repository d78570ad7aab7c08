"""What is given on the command line, read before anything is started."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.spec import Confirmation, McpServer, ModelSpec
from cli.agents import CONDENSERS, Wanted, confirmation_of
from cli.assignments import fields_of
from cli.images import images_of
from cli.mcp_file import read_servers
from cli.moments import moment_of
from client.errors import Invalid

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
    assert Wanted(mcp=path).spec(ModelSpec(name="m")).mcp == (
        McpServer(name="files", command="npx", args=("-y", "files"), env={"KEY": "FILES_KEY"}),
        McpServer(name="search", url="https://x.org", headers={"Authorization": "S"}),
    )


@pytest.mark.parametrize(
    ("server", "said"),
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
def test_an_mcp_server_that_cannot_be_is_named(tmp_path: Path, server: Any, said: str) -> None:
    with pytest.raises(Invalid, match=re.escape(said)) as refused:
        read_servers(mcp_file(tmp_path, it=server))
    assert "sk-secret" not in f"{refused.value} {refused.value.hint}"
    assert str(tmp_path) in str(refused.value)


def test_no_mcp_file_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("{")
    (tmp_path / "other").write_text('{"servers": {}}')
    for name, said in (("no", "cannot be read"), ("text", "JSON"), ("other", "mcpServers")):
        with pytest.raises(Invalid, match=said):
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
def test_a_moment_is_a_time_from_now_or_a_date(text: str, at: str) -> None:
    assert moment_of(text, NOW) == at
    assert moment_of(text, NOW.astimezone(tz=None)) == at


@pytest.mark.parametrize("text", ["soon", "", "2030-01-31T11:00", "-1h", "9999999999999d"])
def test_a_moment_that_cannot_be_met_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        moment_of(text, NOW + timedelta())


def test_a_policy_may_name_the_risk_from_which_on_it_asks() -> None:
    assert confirmation_of("always") == Confirmation(policy="always")
    assert confirmation_of("risky:medium") == Confirmation(policy="risky", threshold="MEDIUM")
    for text in ("sometimes", "always:LOW", "risky:SOME", ""):
        with pytest.raises(Invalid, match="never, always, risky"):
            confirmation_of(text)


@pytest.mark.parametrize("kind", CONDENSERS)
def test_every_condenser_can_be_asked_for_by_its_kind(kind: str) -> None:
    assert Wanted(condenser=kind).spec(ModelSpec(name="m")).condenser.kind == kind


def test_assignments_reach_into_objects_and_their_values_are_json() -> None:
    given = ["limits.max_iterations=50", "limits.max_budget=1.5", "model=openai/x", 'tags=["a"]']
    assert fields_of(given) == {
        "limits": {"max_iterations": 50, "max_budget": 1.5},
        "model": "openai/x",
        "tags": ["a"],
    }
    for wrong in (["limits"], ["=1"], ["a..b=1"], ["a=1", "a=2"], ["a=1", "a.b=2"]):
        with pytest.raises(Invalid):
            fields_of(wrong)


def test_an_image_is_an_address_or_a_file_that_goes_along(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(b"\x89PNG")
    given = ["https://x.org/cat.png", str(tmp_path / "dot.png")]
    assert images_of(given) == ("https://x.org/cat.png", "data:image/png;base64,iVBORw==")
    for wrong in ("notes.txt", str(tmp_path / "no.png")):
        with pytest.raises(Invalid, match=re.escape(wrong)):
            images_of([wrong])


def test_secrets_are_given_by_name() -> None:
    wanted = Wanted(secrets=["API_TOKEN", "_db"])
    assert wanted.spec(ModelSpec(name="m")).secrets == ("API_TOKEN", "_db")


def test_a_value_in_the_place_of_a_secret_s_name_is_refused() -> None:
    with pytest.raises(Invalid, match="is no name of a secret"):
        Wanted(secrets=["sk-0123"]).check()
