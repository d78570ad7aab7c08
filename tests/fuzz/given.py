"""What people give: settings, files, arguments of commands, messages through Temporal."""

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

from agent import front_matter
from agent.configure import changed
from agent.inbox import MAX_MESSAGE, Refused, fault, weight
from agent.inbox import Said as Message
from agent.skills import BadSkill, for_path, knowledge, skill_from
from cli.assignments import fields_of
from cli.images import images_of
from cli.mcp_file import read_servers
from cli.moments import moment_of
from client.codec import Unreadable, encryption_of, keys_of
from client.converter import CONVERTER
from client.errors import Invalid
from models.script import ScriptError, read_scripts
from settings.settings import PREFIX, SettingsError, load
from storage.open import open_store
from tests import builders
from tests.fuzz.watch import Target, told
from workflows.messages import accept, said
from workflows.requests import noted, response_of

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MOST_SAID = 2_000
"""Characters of an error."""


def handle(data: bytes) -> None:
    """What the handlers of a conversation make of a payload, once Temporal's converter took it."""
    payload = Payload(metadata={"encoding": b"json/plain"}, data=data)
    try:
        [sent] = CONVERTER.payload_converter.from_payloads([payload], [Any])
    except Exception:  # then the SDK turns it away, and no handler sees it
        return
    item = accept(sent)
    assert isinstance(item, Refused) or weight(item) <= MAX_MESSAGE
    _travels(item)
    for read in (said, response_of, noted, _changed):
        try:
            _travels(read(sent))
        except (ApplicationError, ValueError) as error:
            told(error, MOST_SAID)


def _changed(sent: Any) -> Any:
    return changed(builders.SPEC, sent) if isinstance(sent, dict) and sent else None


def _travels(item: Any) -> None:
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
        found = load()
        open_store(found.store or "file:///tmp/a")
        encryption_of(found.payload_keys)


@contextlib.contextmanager
def _environment(named: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(PREFIX)}
    ours = {f"{PREFIX}{name}": value for name, value in named.items() if name[:1] != "="}
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
        keys_of(text)
    encryption = encryption_of(KEYS)
    assert encryption is not None
    with contextlib.suppress(Unreadable):
        encryption._decrypted(Payload(metadata={"encryption-key-id": b"a"}, data=data))
    plain = Payload(metadata={"encoding": b"x"}, data=data)
    assert encryption._decrypted(encryption._encrypted(plain)) == plain


def learn(data: bytes) -> None:
    text = data.decode(errors="replace")
    for agent_skill in (True, False):
        skill = skill_from(text, "name", "/a/name.md", agent_skill=agent_skill)
        assert len(skill.model_dump_json()) < 4_000_000 + 10 * len(data)
        knowledge(text[:5_000], [skill], ())
        for_path("src/a/b.py", [skill], ())


def split(data: bytes) -> None:
    front_matter.split(data.decode(errors="replace"))


def _in_file(read: Callable[[Path], object], *suffixes: str) -> Callable[[bytes], None]:
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
    """What stands behind a command: none of it may end in a traceback."""
    text = data.decode(errors="replace").replace("\0", "")
    reads: tuple[Callable[[], object], ...] = (
        lambda: json.dumps(fields_of(text.split("\n"))),
        lambda: moment_of(text, NOW),
        lambda: fault(Message(text="x", images=images_of(text.split("\n")))),
        lambda: fault(Message(text=text, message_id=text[:200], sender=text)),
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

GIVEN = (
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
        _in_file(read_scripts, ".json", ".toml"),
        (SCRIPT, b'{"a":{"answers":["x"]}}', b'name = "n"\nanswers = ["x", {content = "y"}]\n'),
        (ScriptError,),
    ),
    Target(
        "mcp_file",
        _in_file(read_servers, ".json"),
        (b'{"mcpServers":{"a":{"command":"x","args":["y"],"env":{"K":"${K}"}},"b":{"url":"u"}}}',),
        (Invalid,),
    ),
    Target("command_line", type_in, (b'limits.max_iterations=5\na.b={"c":[1]}', b"2h", b"a.png")),
)
