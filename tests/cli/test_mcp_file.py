"""MCP servers from files as other programs write them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from perdure.agent.extensions import McpServer
from perdure.cli.mcp_file import looks_secret, read_servers
from perdure.errors import Invalid


def mcp_file(folder: Path, **servers: Any) -> Path:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_servers_are_read_as_other_agents_write_them(tmp_path: Path) -> None:
    path = mcp_file(
        tmp_path,
        files={"command": "npx", "args": ["-y", "files"], "env": {"KEY": "${FILES_KEY}"}},
        search={"type": "http", "url": "https://x.org", "headers": {"Authorization": "${env:S}"}},
    )
    assert read_servers(path) == (
        McpServer(name="files", command="npx", args=("-y", "files"), env={"KEY": "FILES_KEY"}),
        McpServer(name="search", url="https://x.org", headers={"Authorization": "S"}),
    )


def test_a_file_of_claude_desktop_is_taken_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = mcp_file(
        tmp_path,
        git={
            "type": "stdio",
            "command": "uvx",
            "args": ["mcp-server-git"],
            "env": {"FOO": "bar", "DEPTH": 3, "GITHUB_TOKEN": "ghp_0123456789"},
            "disabled": False,
            "autoApprove": ["git_log"],
            "alwaysAllow": [],
            "timeout": 60,
        },
        search={"url": "https://x.org", "headers": {"Authorization": "Bearer ${SEARCH_KEY}"}},
        off={"command": "x", "disabled": True},
    )
    git, search = read_servers(path)
    assert git.env_values == {"FOO": "bar", "DEPTH": "3", "GITHUB_TOKEN": "ghp_0123456789"}
    assert search.header_values == {"Authorization": "Bearer ${SEARCH_KEY}"}
    printed = " ".join(capsys.readouterr().err.split())
    assert "not started, as the file says: off." in printed
    assert "alwaysAllow, autoApprove, timeout of 'git'" in printed
    assert "env.GITHUB_TOKEN of 'git' looks like a secret" in printed
    assert 'write "${GITHUB_TOKEN}" here' in printed
    assert printed.count("looks like a secret") == 1
    assert "ghp_" not in printed


@pytest.mark.parametrize(
    ("name", "text", "secret"),
    [
        ("API_TOKEN", "abc", True),
        ("db_password", "swordfish", True),
        ("X", "sk-0123456789", True),
        ("X", "Bearer abcdef", True),
        ("DATABASE_URL", "postgres://me:pw@host/db", True),
        ("X", "q8Zr2LmV7xKp0TbYw5NdHs1Gf", True),
        ("Authorization", "Bearer ${TOKEN}", False),
        ("KEY_FILE", "/etc/keys/one", False),
        ("BASE_URL", "https://x.org/v1", False),
        ("MODE", "production", False),
        ("NOTE", "a sentence of many words, of which there are 10 in all", False),
        ("PORT", "8080", False),
        ("API_TOKEN", "", False),
    ],
)
def test_secrets_are_told_by_name_beginning_or_characters(
    name: str, text: str, secret: bool
) -> None:
    assert looks_secret(name, text) is secret


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (
            {"command": "x", "env": {"KEY": "${input:key}"}},
            "has ${input:key}, which only",
        ),
        ({"command": "x", "env": {"KEY": ["a"]}}, "env.KEY of 'it' is no text"),
        ({"command": "x", "env": "KEY=1"}, "`env` of 'it' is not an object"),
        ({"command": "x", "url": "u"}, "a `command` to start or a `url`"),
        ({"args": []}, "a `command` to start or a `url`"),
        ({"command": "x", "colour": "red"}, "'it' has no 'colour'; it may have args"),
        ({"command": "x", "args": "one"}, "'it' at args"),
        ({"type": "sse", "url": "u"}, "'it' has the type 'sse': use stdio or http"),
        ("x", "is not an object"),
    ],
)
def test_an_impossible_server_is_refused_by_name(tmp_path: Path, server: Any, message: str) -> None:
    with pytest.raises(Invalid, match=re.escape(message)) as refused:
        read_servers(mcp_file(tmp_path, it=server))
    assert str(tmp_path) in str(refused.value)


def test_an_unusable_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("{")
    (tmp_path / "other").write_text('{"servers": {}}')
    for name, message in (("no", "cannot be read"), ("text", "JSON"), ("other", "mcpServers")):
        with pytest.raises(Invalid, match=message):
            read_servers(tmp_path / name)
