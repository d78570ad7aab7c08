"""`perdure backup` and `perdure drill`, and a conversation that goes on from what they restored."""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from perdure.embedded.temporal import TemporalServer
from perdure.storage.files import FileStore
from perdure.storage.keys import conversation_prefix, event_key
from perdure.storage.store import list_keys
from tests.cli.command import Perdure, model_options, tool_call_answer
from tests.workers import worker_process


def as_store(folder: Path) -> str:
    return f"file://{folder}"


@pytest.mark.long
async def test_a_conversation_goes_on_from_a_backup_when_store_and_temporal_are_lost(
    perdure: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    backup, restored = as_store(tmp_path / "backup"), as_store(tmp_path / "restored")
    path = script(tool_call_answer("terminal", command="echo one"), {"content": "Done."})
    theirs = perdure.with_env(PERDURE_USER=f"user-{uuid4()}")
    ran = await theirs("run", "Go.", "--confirm", "always", *model_options(path), "-ojson")
    name = ran.json["conversation_id"]
    before = (await theirs("show", name, "-ojsonl")).lines

    first = await theirs("backup", backup, "-ojson")
    assert (first.code, first.json["events"] >= len(before)) == (0, True), first
    again = await theirs("backup", backup)
    assert again.code == 0, again

    drill = await theirs("drill", "--from", backup, "--at", "now", "--into", restored)
    assert name not in drill.out, "other tests have damaged theirs, in the same store"
    assert "would go on at once" in drill.out
    assert f"PERDURE_STORE={restored}" in drill.err

    server = await TemporalServer.start(tmp_path / "temporal", ui=False)
    there = theirs.with_env(
        TEMPORAL_ADDRESS=server.address,
        PERDURE_STORE=restored,
        PERDURE_DATA=str(tmp_path / "data"),
    )
    with worker_process(there.env, tmp_path / "worker.log"):
        reopened = await there("reopen", "--all")
        assert (reopened.code, reopened.err) == (0, "1 reopened\n")
        approved = await there("approve", name)
        assert approved.code == 0, approved
        watched = await there("watch", name, "--until-rest")
        after = (await there("show", name, "-ojsonl")).lines
    await server.stop()
    assert after[: len(before)] == before
    assert "Done." in watched.out
    kinds = [event["kind"] for event in after]
    assert kinds.count("ObservationEvent") == 1


@pytest.mark.longest
async def test_a_drill_names_what_is_damaged_and_keeps_nothing(
    perdure: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    theirs = perdure.with_env(PERDURE_USER=f"user-{uuid4()}", TMPDIR=str(tmp_path))
    ran = await theirs("run", "Go.", *model_options(script({"content": "Done."})), "-ojson")
    name = ran.json["conversation_id"]
    yesterday = await theirs("drill", "--from", as_store(backup))
    assert yesterday.code == 0
    assert "There was nothing at that time" in yesterday.err
    await theirs("backup", as_store(backup))
    key = conversation_prefix(theirs.env["PERDURE_USER"], name) + event_key(name, 1)
    copies = FileStore(backup)
    await copies.replace(key, (await copies.read(key) or b"")[:-9])
    held = {key: await copies.read(key) async for key in list_keys(copies, "")}
    drill = await theirs("drill", "--from", as_store(backup), "--at", "now", "-ojson")
    assert drill.code == 1
    [damage] = [it for it in drill.json["damages"] if it["id"] == name and it["kind"] == "damaged"]
    assert (damage["user"], damage["key"]) == (theirs.env["PERDURE_USER"], key)
    assert {key: await copies.read(key) async for key in list_keys(copies, "")} == held
    assert not list(tmp_path.glob("perdure-drill-*"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("drill", "--at", "yesterdayish"), 2, "is not a time"),
        (("drill", "--at", "2999-01-01"), 2, "lies in the future"),
        (("drill", "--from", "nowhere"), 2, "is not the URL of a store"),
        (("drill", "--at", "now", "--into", "file://{filled}"), 4, "is not empty"),
        (("backup", "file://{store}/"), 2, "cannot be copied into itself"),
        (("backup", "file:///proc/nothing"), 2, "/proc/nothing"),
        (("backup",), 2, "INTO"),
    ],
)
async def test_what_cannot_be_is_refused_with_a_sentence(
    configured: Perdure, tmp_path: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    filled, store = tmp_path / "filled", tmp_path / "store"
    for folder in (filled, store):
        await FileStore(folder).create("app/state/x.json", b"{}")
    theirs = configured.with_env(PERDURE_STORE=as_store(store))
    filled_in = [it.format(filled=filled, store=store) for it in arguments]
    refused = await theirs(*filled_in)
    assert refused.code == code, refused
    assert sentence in refused.err
    assert "Traceback" not in refused.err
