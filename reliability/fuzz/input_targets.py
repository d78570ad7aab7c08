"""Fuzz targets that read settings, files, command arguments and messages through Temporal."""

import base64
import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError

from perdure.agent.configure import check_changes
from perdure.agent.knowledge.skills import (
    BadSkill,
    parse_skill,
    skills_for_message,
    skills_for_path,
    split_front_matter,
)
from perdure.agent.loop.inbox import MAX_MESSAGE_BYTES, RefusedInput, find_message_error, json_size
from perdure.agent.loop.inbox import UserMessage as Message
from perdure.cli.arguments import load_images, parse_assignments
from perdure.cli.mcp_file import read_servers
from perdure.cli.moments import parse_moment
from perdure.errors import Invalid
from perdure.settings.errors import SettingsError
from perdure.settings.settings import ENV_PREFIX, load_settings
from perdure.storage.open import open_store
from perdure.temporal.codec import Unreadable, build_encryption, parse_keys
from perdure.temporal.converter import CONVERTER
from perdure.testing.errors import ScriptError
from perdure.testing.script import read_scripts
from perdure.workflows.messages import parse_message, to_inbox_item
from perdure.workflows.requests import parse_note, parse_response
from reliability.fuzz.watch import Target, check_error
from tests import builders

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MAX_ERROR_CHARACTERS = 2_000
"""Characters of an error."""


def handle(data: bytes) -> None:
    """Feed a payload to the handlers of a conversation, through Temporal's converter."""
    payload = Payload(metadata={"encoding": b"json/plain"}, data=data)
    try:
        [sent] = CONVERTER.payload_converter.from_payloads([payload], [Any])
    except Exception:  # then the SDK turns it away, and no handler sees it
        return
    item = to_inbox_item(sent)
    assert isinstance(item, RefusedInput) or json_size(item) <= MAX_MESSAGE_BYTES
    round_trip(item)
    for read in (parse_message, parse_response, parse_note, apply_change):
        try:
            round_trip(read(sent))
        except (ApplicationError, ValueError) as error:
            check_error(error, MAX_ERROR_CHARACTERS)


def apply_change(sent: Any) -> Any:
    return check_changes(builders.SPEC, sent) if isinstance(sent, dict) and sent else None


def round_trip(item: Any) -> None:
    """Through Temporal and back, inside of what it is put into."""
    [payload] = CONVERTER.payload_converter.to_payloads([{"step": {"items": [item]}}])
    CONVERTER.payload_converter.from_payloads([payload], [Any])


def set_up(data: bytes) -> None:
    """Lines before an empty one are variables, the rest is ./perdure.toml."""
    head, _, toml = data.partition(b"\n\n")
    lines = (line.replace(b"\0", b"").partition(b"=") for line in head.split(b"\n"))
    named = {os.fsdecode(name): os.fsdecode(value) for name, _, value in lines if name}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), _environment(named):
        Path("perdure.toml").write_bytes(toml)
        settings = load_settings()
        open_store(settings.store or "file:///tmp/a")
        build_encryption(settings.payload_keys)


@contextlib.contextmanager
def _environment(named: Mapping[str, str]) -> Iterator[None]:
    before = {
        name: os.environ.pop(name) for name in list(os.environ) if name.startswith(ENV_PREFIX)
    }
    ours = {f"{ENV_PREFIX}{name}": value for name, value in named.items() if name[:1] != "="}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]
        os.environ.update(before)


def decode(data: bytes) -> None:
    """Payloads that anybody put into Temporal, and keys in a setting."""
    text = data.decode(errors="replace").replace("\0", "")
    with contextlib.suppress(Invalid):
        parse_keys(text)
    encryption = build_encryption(KEYS)
    assert encryption is not None
    with contextlib.suppress(Unreadable):
        encryption._decrypt(Payload(metadata={"encryption-key-id": b"a"}, data=data))
    plain = Payload(metadata={"encoding": b"x"}, data=data)
    assert encryption._decrypt(encryption._encrypt(plain)) == plain


def learn(data: bytes) -> None:
    text = data.decode(errors="replace")
    for agent_skill in (True, False):
        skill = parse_skill(text, "name", "/a/name.md", agent_skill=agent_skill)
        assert len(skill.model_dump_json()) < 4_000_000 + 10 * len(data)
        skills_for_message(text[:5_000], [skill], ())
        skills_for_path("src/a/b.py", [skill], ())


def split(data: bytes) -> None:
    split_front_matter(data.decode(errors="replace"))


def read_as_file(read: Callable[[Path], object], *suffixes: str) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        wrong: Exception | None = None
        for suffix in suffixes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, f"given{suffix}")
                path.write_bytes(data)
                try:
                    read(path)
                except (ScriptError, Invalid) as error:
                    wrong = error
        if wrong is not None:
            raise wrong

    return run


def type_in(data: bytes) -> None:
    """Run the code behind a command: none of it may end in a traceback."""
    text = data.decode(errors="replace").replace("\0", "")
    reads: tuple[Callable[[], object], ...] = (
        lambda: json.dumps(parse_assignments(text.split("\n"))),
        lambda: parse_moment(text, NOW),
        lambda: find_message_error(Message(text="x", images=load_images(text.split("\n")))),
        lambda: find_message_error(Message(text=text, message_id=text[:200], sender=text)),
    )
    for read in reads:
        with contextlib.suppress(Invalid):
            read()


KEYS = SecretStr("a:" + base64.b64encode(bytes(32)).decode())

SKILL = (
    b"---\nname: deploy\ndescription: how: to\ntriggers: [deploy, ship]\npaths: src/**/*.{ts,js}\n"
    b"always: no\ninputs:\n  - name: x\n    description: y\n---\n# Deploy\nDo it.\n"
)
LAUGHS = b"---\na: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%b]\n" % (at, at, b",".join([b"*%c" % (at - 1)] * 9)) for at in range(98, 106)
)
SCRIPT = (
    b'{"answers":["hi",{"tool_calls":[{"name":"t","arguments":{}}],"failures":[{"status":500}],'
    b'"usage":{"prompt_tokens":1}}],"repeat":true,"titles":["T"]}'
)
SENT = (
    b'"hello"',
    b'{"text":"hi","images":["data:image/png;base64,aa=="],"message_id":"m","sender":"s"}',
    b'{"accept":true,"calls":["c"],"through":3,"reason":"r"}',
    b'{"title":"T","tags":["a"],"state":{"user:a":[{"b":1}],"c":null}}',
    b'{"limits":{"max_iterations":3},"model":"m","confirmation":{"policy":"always"},"tags":["a"]}',
    b'{"conversation_id":"c","user_id":"u","spec":{"model":{"name":"m"}}}',
)

INPUT_TARGETS = (
    Target("handlers", handle, SENT, growth=400),
    Target(
        "settings",
        set_up,
        (
            b"STORE=s3://bucket/prefix\nUSER=ada\nUNSAFE_STORE=yes\nPAYLOAD_KEYS=a:b\n\n",
            b"DATA=~/x\n\nstore = \"file:///a\"\nsearch_attributes = 'off'\n[x]\na = [1]\n",
        ),
        (SettingsError, ValueError, Invalid),
    ),
    Target("codec", decode, (b"a:" + b"A" * 43 + b"=,b:x", b"~nobody/x", bytes(40)), growth=400),
    Target("skill", learn, (SKILL, LAUGHS + b"always: *i\n---\nx\n"), (BadSkill,), growth=2_000),
    Target("front_matter", split, (SKILL, LAUGHS + b"---\nx\n"), (ValueError,), growth=2_000),
    Target(
        "script",
        read_as_file(read_scripts, ".json", ".toml"),
        (SCRIPT, b'{"a":{"answers":["x"]}}', b'name = "n"\nanswers = ["x", {content = "y"}]\n'),
        (ScriptError,),
    ),
    Target(
        "mcp_file",
        read_as_file(read_servers, ".json"),
        (b'{"mcpServers":{"a":{"command":"x","args":["y"],"env":{"K":"${K}"}},"b":{"url":"u"}}}',),
        (Invalid,),
    ),
    Target("command_line", type_in, (b'limits.max_iterations=5\na.b={"c":[1]}', b"2h", b"a.png")),
)
