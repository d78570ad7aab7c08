"""Every command that names a conversation or a batch, as another user than the one it is of."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import typer
import typer.main

from perdure.cli.main import make_app
from perdure.client.ids import new_conversation_id
from tests.cli.batch.test_batch import write_answers, write_batch_file
from tests.cli.command import CompletedCommand, Perdure, model_options
from tests.cli.past_batch import InProcessCommand
from tests.cli.test_bad_input import Script
from tests.secrets.keys import key_setting

ON_CONVERSATIONS: dict[str, tuple[str, ...]] = {
    "chat": ("--resume", "ID"),
    "send": ("ID", "Hello?"),
    "watch": ("ID", "--until-rest"),
    "show": ("ID",),
    "diff": ("ID",),
    "files": ("ID",),
    "status": ("ID",),
    "ask": ("ID", "What is the secret?"),
    "pause": ("ID",),
    "resume": ("ID",),
    "interrupt": ("ID",),
    "approve": ("ID", "--call", "call"),
    "reject": ("ID", "--call", "call"),
    "configure": ("ID", 'tags=["mine"]'),
    "signal": ("ID", "paid"),
    "answer": ("ID", "Blue."),
    "condense": ("ID",),
    "note": ("ID", "--title", "Mine"),
    "close": ("ID",),
    "export": ("ID", "--format", "openai"),
    "verify": ("ID",),
    "fork": ("ID",),
    "state": ("ID",),
}
OWNERS: dict[str, tuple[str, ...]] = {
    "address create": ("ID",),
    "share": ("ID", "mallory", "--write"),
    "reopen": ("ID",),
    "delete": ("ID",),
    "memory ingest": ("ID",),
    "rm": ("ID", "--yes", "--force"),
    "purge": ("ID", "--yes", "--force"),
}
ON_BATCHES: dict[str, tuple[str, ...]] = {
    "batch status": ("NAME",),
    "batch watch": ("NAME",),
    "batch pause": ("NAME",),
    "batch resume": ("NAME",),
    "batch retune": ("NAME", "--concurrency", "2"),
    "batch retry": ("NAME", "--detach"),
    "batch rescore": ("NAME", "--detach"),
    "batch results": ("NAME",),
    "batch compare": ("NAME", "another"),
    "batch report": ("NAME", "--output", "-"),
    "batch export": ("NAME", "--format", "openai"),
    "batch share": ("NAME", "mallory", "--write"),
}
ON_DISCUSSIONS: dict[str, tuple[str, ...]] = {
    "discussion status": ("NAME",),
    "discussion watch": ("NAME",),
    "discussion export": ("NAME",),
    "discussion say": ("NAME", "Listen to me."),
    "discussion vote": ("NAME", "tea"),
    "discussion pause": ("NAME",),
    "discussion resume": ("NAME",),
    "discussion close": ("NAME",),
    "discussion verify": ("NAME",),
    "discussion rm": ("NAME", "--yes", "--force"),
    "discussion share": ("NAME", "mallory", "--write"),
}

ON_SCHEDULES: dict[str, tuple[str, ...]] = {
    "schedule show": ("NAME",),
    "schedule pause": ("NAME",),
    "schedule resume": ("NAME",),
    "schedule trigger": ("NAME",),
    "schedule backfill": ("NAME", "--since", "2026-01-01", "--until", "2026-01-02"),
    "schedule delete": ("NAME",),
}

ON_WEBHOOKS: dict[str, tuple[str, ...]] = {
    "webhook show": ("ID",),
    "webhook test": ("ID",),
    "webhook rotate": ("ID",),
    "webhook delete": ("ID",),
}

WITHOUT_IDS = {
    *("dev", "run", "ls", "top", "replay", "doctor", "worker", "env", "deploy", "setup temporal"),
    *("backup", "drill"),
    *("model serve", "codec serve", "batch run", "discuss", "discussion ls"),
    *("gateway", "acp", "mcp", "key create", "key ls", "key login"),
    *("secret set", "secret ls", "secret reencrypt", "agent check", "agent ls", "agent show"),
    *("schedule create", "schedule ls", "webhook create", "webhook ls", "address ls"),
    *("memory put", "memory search", "memory ls", "memory reindex", "reindex"),
}
"""Commands that name nothing which is there already."""

ON_KEYS = {"key revoke", "secret rm", "address revoke", "memory get", "memory rm"}
"""Commands that name a key, a secret, an address or a memory: `test_gateway.py` here tries them
with another user's, `tests/secrets/test_vault.py`, `tests/gateway` and `tests/memory`."""

READERS = {"state", "watch", "show", "diff", "files", "status", "export", "verify", "fork"}

BATCH_WRITERS = {"batch pause", "batch resume", "batch retune"}
BATCH_OWNERS = {"batch retry", "batch rescore", "batch share"}


def list_commands(group: Any, prefix: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from list_commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}"


def test_every_command_is_here() -> None:
    commands = set(list_commands(typer.main.get_command(make_app())))
    named = {*ON_CONVERSATIONS, *OWNERS, *ON_BATCHES, *ON_DISCUSSIONS, *ON_SCHEDULES, *ON_WEBHOOKS}
    assert commands == named | ON_KEYS | WITHOUT_IDS


class Users:
    """The command as one user or another; the input of every command is empty."""

    def __init__(self, run: InProcessCommand, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run = run
        self._monkeypatch = monkeypatch

    def __call__(self, user: str, *args: str) -> CompletedCommand:
        self._monkeypatch.setenv("PERDURE_USER", user)
        self._monkeypatch.setattr("sys.stdin", io.StringIO())
        return self._run(*args)


@pytest.fixture
def users(
    perdure: Perdure,  # noqa: ARG001 - its worker
    run_configured: InProcessCommand,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Users:
    monkeypatch.chdir(tmp_path)
    return Users(run_configured, monkeypatch)


def start_conversation(users: Users, script: Script) -> str:
    answers = [{"content": f"The secret is {number}."} for number in range(20)]
    done = users("anna", "run", "Go.", *model_options(script(*answers)), "-ojson")
    assert done.code == 0, done
    return str(done.json["conversation_id"])


def outcome(
    users: Users, user: str, command: str, args: tuple[str, ...], name: str
) -> tuple[int, str]:
    words = [name if word in ("ID", "NAME") else word for word in args]
    done = users(user, *command.split(), *words)
    return done.code, f"{done.out}\n{done.err}".replace(name, "NAME")


@pytest.mark.long
def test_a_stranger_is_told_what_everybody_is_told_of_nothing(users: Users, script: Script) -> None:
    name, unknown = start_conversation(users, script), new_conversation_id()
    shown = users("anna", "show", name).out
    for command, args in (ON_CONVERSATIONS | OWNERS).items():
        for prefix in ("", "anna/"):
            stranger = outcome(users, "ben", command, args, prefix + name)
            assert stranger == outcome(users, "ben", command, args, prefix + unknown), command
            assert stranger[0] != 0, (command, stranger)
            assert "secret is" not in stranger[1]
    assert name not in users("ben", "ls", "-ojson").out
    assert users("ben", "reopen", "--all").out == ""
    assert users("anna", "show", name).out == shown


@pytest.mark.long
def test_a_strangers_batch_is_none(users: Users, tmp_path: Path) -> None:
    file, name = write_batch_file(tmp_path)
    write_answers(tmp_path, "a secret")
    assert users("anna", "batch", "run", file).code == 0
    before, unknown = users("anna", "batch", "results", name).out, f"other-{uuid4()}"
    for command, args in ON_BATCHES.items():
        for prefix in ("", "anna/"):
            stranger = outcome(users, "ben", command, args, prefix + name)
            assert stranger == outcome(users, "ben", command, args, prefix + unknown), command
            is_own = prefix and command in BATCH_OWNERS
            assert stranger[0] == (4 if is_own else 3), (command, stranger)
    export = ("ID", "--format", "openai")
    assert outcome(users, "ben", "export", export, name) == outcome(
        users, "ben", "export", export, unknown
    )
    assert name not in users("ben", "batch", "status").out
    assert users("anna", "batch", "results", name).out == before
    bens = users("ben", "batch", "run", file)
    assert bens.code == 0
    assert f"/users/ben/batches/{name}/" in bens.err


@pytest.mark.long
def test_a_strangers_discussion_is_none(users: Users, discussion_spec: str) -> None:
    name, unknown = f"tea-{uuid4()}", f"other-{uuid4()}"
    assert users("anna", "discuss", discussion_spec, "--id", name).code == 0
    before = users("anna", "discussion", "watch", name, "-o", "jsonl").out
    for command, args in ON_DISCUSSIONS.items():
        for prefix in ("", "anna/"):
            stranger = outcome(users, "ben", command, args, prefix + name)
            assert stranger == outcome(users, "ben", command, args, prefix + unknown), command
            assert stranger[0] != 0, (command, stranger)
            assert "Tea is calm" not in stranger[1]
    assert name not in users("ben", "discussion", "ls").out
    assert name in users("anna", "discussion", "ls").out
    assert users("anna", "discussion", "watch", name, "-o", "jsonl").out == before


@pytest.mark.long
def test_a_strangers_schedule_is_none(users: Users, script: Script) -> None:
    name, unknown = f"tea-{uuid4()}", f"other-{uuid4()}"
    times = ("--cron", "0 8 1 1 *")
    made = users("anna", "schedule", "create", name, "Go.", *times, "--model", "scripted:a.json")
    assert made.code == 0, made
    before = users("anna", "schedule", "show", name).out
    for command, args in ON_SCHEDULES.items():
        stranger = outcome(users, "ben", command, args, name)
        assert stranger == outcome(users, "ben", command, args, unknown), command
        assert stranger[0] == 3, (command, stranger)
    assert name not in users("ben", "schedule", "ls").out
    assert users("anna", "schedule", "show", name).out == before
    annas = start_conversation(users, script)
    sent = ("schedule", "create", "mine", "Go.", *times, "--conversation", annas)
    assert users("ben", *sent).code == 3
    assert users("ben", "address", "create", "--schedule", name).code == 3
    assert users("anna", "schedule", "delete", name).code == 0


@pytest.mark.long
def test_a_strangers_webhook_is_none(
    users: Users, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_SECRET_KEYS", key_setting("first"))
    url = f"https://8.8.8.8/{uuid4()}"
    name = users("anna", "webhook", "create", url).out.split()[0]
    before = users("anna", "webhook", "ls").out
    for command, args in ON_WEBHOOKS.items():
        stranger = outcome(users, "ben", command, args, name)
        assert stranger == outcome(users, "ben", command, args, "f" * 16), command
        assert stranger[0] == 3, (command, stranger)
    assert url not in users("ben", "webhook", "ls").out
    annas = start_conversation(users, script)
    sent = ("webhook", "create", "https://8.8.8.8/", "--conversation", annas)
    assert users("ben", *sent).code == 3
    assert users("anna", "webhook", "ls").out == before
    assert users("anna", "webhook", "delete", name).code == 0


@pytest.mark.long
def test_what_is_shared_is_named_with_its_user(users: Users, script: Script) -> None:
    name = start_conversation(users, script)
    shared = f"anna/{name}"
    assert users("anna", "share", name).out == "No other user may read it.\n"
    granted = users("anna", "share", name, "ben", "-ojson")
    assert granted.json["grants"] == [{"user_id": "ben", "access": "read"}]
    for command, args in ON_CONVERSATIONS.items():
        code, text = outcome(users, "ben", command, args, shared)
        if command in READERS:
            assert code == 0, (command, text)
        elif command == "answer":  # it reads first whether anybody asks
            assert (code, "waits for an answer" in text) == (4, True), text
        elif command != "chat":
            assert (code, "may read" in text) == (4, True), (command, text)
    assert "The secret is 0." in users("ben", "show", shared.upper().replace("ANNA", "anna")).out
    assert users("ben", "show", name).code == 3
    assert users("anna", "share", name, "ben", "--write").out == "ben  write\n"
    answered = users("ben", "send", shared, "Once more.", "--wait")
    assert (answered.code, "The secret is 1." in answered.out) == (0, True)
    for command, args in OWNERS.items():
        code, text = outcome(users, "ben", command, args, shared)
        assert (code, "Only anna can do that" in text) == (4, True), (command, text)
    assert users("anna", "show", shared).code == 0, "her own is hers under both names"
    assert users("anna", "share", name, "--revoke", "ben").out == "No other user may read it.\n"
    assert users("ben", "show", shared).code == 3
    assert users("ben", "ls", "--shared", "-ojson").json == []
    for wrong in (("ben", "--revoke", "ben"), ("--write",), ("anna",), ("a/b",)):
        assert users("anna", "share", name, *wrong).code == 2, wrong


def test_what_is_shared_is_listed_and_forked(users: Users, script: Script) -> None:
    name = start_conversation(users, script)
    nothing = users("ben", "ls", "--shared")
    assert (nothing.out, "shares a conversation with you" in nothing.err) == ("", True)
    users("anna", "share", name, "ben")
    [listed] = users("ben", "ls", "--shared", "-ojson").json
    assert (listed["id"], listed["title"]) == (f"anna/{name}", "Go.")
    assert users("ben", "ls", "--shared", "--text", "nothing").out == ""
    assert name not in users("ben", "ls", "-ojson").out
    assert users("ben", "show", listed["id"]).code == 0
    forked = users("ben", "fork", listed["id"], "-ojson").json
    assert forked["parent"] == f"anna/{name}"
    assert users("ben", "ls", "-ojson").json[0]["id"] == forked["conversation_id"]
    users("anna", "share", name, "--revoke", "ben")
    answered = users("ben", "send", forked["conversation_id"], "Once more.", "--wait")
    assert (answered.code, "The secret is 1." in answered.out) == (0, True)
    refused = users("anna", "rm", name, "--yes", "--force", "--with-forks")
    assert (refused.code, f"ben/{forked['conversation_id']}" in refused.err) == (4, True)


@pytest.mark.long
def test_a_shared_batch_is_named_with_its_user(users: Users, tmp_path: Path) -> None:
    file, name = write_batch_file(tmp_path)
    write_answers(tmp_path, "a secret")
    assert users("anna", "batch", "run", file).code == 0
    assert users("anna", "batch", "share", name).out == "No other user may read it.\n"
    granted = users("anna", "batch", "share", name, "ben", "-ojson").json
    assert granted["grants"] == [{"user_id": "ben", "access": "read"}]
    shared = f"anna/{name}"
    [listed] = users("ben", "batch", "status", "--shared", "-ojson").json
    assert listed["name"] == shared
    assert (
        users("ben", "batch", "results", shared).out == users("anna", "batch", "results", name).out
    )
    watched = users("ben", "batch", "watch", shared, "a")
    assert (watched.code, "a secret" in watched.out) == (0, True)
    assert users("ben", "batch", "run", file).code == 0  # his own, of the same name
    for command, args in ON_BATCHES.items():
        words = tuple(name if word == "another" else word for word in args)
        code, text = outcome(users, "ben", command, words, shared)
        if command in BATCH_OWNERS:
            assert (code, "Only anna can do that" in text) == (4, True), (command, text)
        elif command in BATCH_WRITERS:
            assert (code, "may read the batch" in text) == (4, True), (command, text)
        else:
            assert code == 0, (command, text)
    users("anna", "batch", "share", name, "ben", "--write")
    paused = users("ben", "batch", "pause", shared)
    assert (paused.code, "is not running" in paused.err) == (4, True)
    assert users("anna", "batch", "share", name, "--revoke", "ben").code == 0
    assert users("ben", "batch", "results", shared).code == 3
    nothing = users("ben", "batch", "status", "--shared")
    assert (nothing.out, "shares a batch with you" in nothing.err) == ("", True)
