"""The files of a conversation outlive the machine on which they were made."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import temporalio.client

from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.fork import fork
from perdure.events.entry import Files
from perdure.operations.worker.process import workspace_queue
from perdure.secrets.registry import Secrets
from perdure.storage.snapshots.restore import restore
from perdure.temporal.converter import CONVERTER
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.watching import entries, observations

EDITING = ("terminal", "delegate", "think", "finish")


async def on_machine(harness: ConversationHarness, name: str) -> ConversationHarness:
    """Return the same store and queue on another machine with an empty disk."""
    disk, queue = harness.folder / name, harness.client.task_queue
    world = replace(harness.resources, workspaces=disk, home=workspace_queue(disk, queue))
    address = harness.client.temporal.service_client.config.target_host
    temporal = await temporalio.client.Client.connect(address, data_converter=CONVERTER)
    client = Client(temporal, harness.client.store, task_queue=queue)
    return replace(harness, client=client, resources=world)


def terminal_call(command: str) -> dict[str, object]:
    return tool_call_answer(("terminal", {"command": command}))


async def recorded_files(talk: Conversation) -> list[Files]:
    return [entry.files for entry in await entries(talk) if entry.files]


@pytest.mark.long
async def test_another_machine_goes_on_with_the_files(harness: ConversationHarness) -> None:
    here, there = await on_machine(harness, "here"), await on_machine(harness, "there")
    spec = here.spec(
        terminal_call("mkdir -p empty a && echo one > a/b && chmod 750 a/b && ln -s a/b link"),
        text_answer("written"),
        terminal_call("cat link; stat -c %a a/b; ls -d empty; echo two >> a/b"),
        terminal_call("cat a/b"),
        text_answer("read"),
        tools=EDITING,
        heartbeat_timeout=1,
    )
    async with here.worker():
        talk = await here.client.start("write", spec)
        await talk.wait_for_turn()
    shutil.rmtree(here.resources.workspaces)
    async with there.worker():
        await talk.send("read", "read")
        await talk.wait_for_turn("read")

    _, read, again = await observations(talk)
    assert "one\n750\nempty\n" in read
    assert again.startswith("one\ntwo\n")
    first, moved = await recorded_files(talk)
    assert (first.home, moved.home) == (here.resources.home, there.resources.home)


@pytest.mark.long
async def test_a_conversation_stays_where_its_files_are(harness: ConversationHarness) -> None:
    here, there = await on_machine(harness, "here"), await on_machine(harness, "there")
    steps = [terminal_call(f"echo {number} >> file") for number in range(6)]
    spec = here.spec(
        terminal_call("pwd"), text_answer("begun"), *steps, text_answer("done"), tools=EDITING
    )
    async with here.worker():
        talk = await here.client.start("go", spec)
        await talk.wait_for_turn()
        async with there.worker():
            await talk.send("go on", "on")
            await talk.wait_for_turn("on")

    assert {files.home for files in await recorded_files(talk)} == {here.resources.home}
    assert (here.resources.workspaces / talk.id / "file").read_text() == "0\n1\n2\n3\n4\n5\n"
    assert not (there.resources.workspaces / talk.id).exists()


async def test_a_call_that_changes_nothing_takes_no_snapshot(harness: ConversationHarness) -> None:
    here = await on_machine(harness, "here")
    spec = here.spec(
        terminal_call("echo one > a"),
        terminal_call("cat a"),
        terminal_call("true"),
        text_answer("done"),
        tools=EDITING,
    )
    async with here.worker():
        talk = await here.client.start("go", spec)
        await talk.wait_for_turn()
    assert len(await recorded_files(talk)) == 1


async def test_a_fork_has_the_files_of_its_slot(harness: ConversationHarness) -> None:
    here = await on_machine(harness, "here")
    steps = (terminal_call("echo one > a"), terminal_call("echo two >> a"), text_answer("done"))
    async with here.worker():
        talk = await here.client.start("go", here.spec(*steps, tools=EDITING))
        await talk.wait_for_turn()
        early = next(entry.seq for entry in await entries(talk) if entry.files)
        other = (await fork(here.client, talk.id, early)).conversation
        await other.send("look", "look")
        await other.wait_for_turn("look")

    files = [here.resources.workspaces / item.id / "a" for item in (talk, other)]
    assert [file.read_text() for file in files] == ["one\ntwo\n", "one\ntwo\n"]


async def test_a_folder_of_the_users_own_is_kept_only_where_asked_for(
    harness: ConversationHarness, tmp_path: Path
) -> None:
    here = await on_machine(harness, "here")
    own = tmp_path / "own"
    own.mkdir()
    async with here.worker():
        for snapshots in (None, True):
            spec = here.spec(
                terminal_call(f"echo {snapshots} > a"),
                text_answer("done"),
                tools=EDITING,
                workspace=str(own),
                snapshots=snapshots,
            )
            talk = await here.client.start("go", spec)
            await talk.wait_for_turn()
            assert len(await recorded_files(talk)) == bool(snapshots)


async def test_files_without_a_snapshot_are_reported_and_the_work_goes_on(
    harness: ConversationHarness,
) -> None:
    here = await on_machine(harness, "here")
    steps = (
        terminal_call("truncate -s 2G huge"),
        terminal_call("rm huge; echo one > a"),
        text_answer("done"),
    )
    async with here.worker():
        talk = await here.client.start("go", here.spec(*steps, tools=EDITING))
        assert (await talk.wait_for_turn()).status == "finished"
    huge, then = await recorded_files(talk)
    assert huge.snapshot is None
    assert huge.fault is not None
    assert "huge" in huge.fault
    assert then.snapshot is not None
    assert then.fault is None


async def test_a_delegated_conversation_works_on_the_files_of_its_parent(
    harness: ConversationHarness,
) -> None:
    here = await on_machine(harness, "here")
    # Both are given the same answers, and the other one has nobody to delegate to.
    steps = (
        terminal_call("echo line >> a"),
        tool_call_answer(("delegate", {"task": "go on"})),
        text_answer("over"),
    )
    async with here.worker():
        talk = await here.client.start("go", here.spec(*steps, tools=EDITING))
        await talk.wait_for_turn()
    first, after = [files.snapshot for files in await recorded_files(talk)]
    assert first is not None
    assert after is not None
    for key, lines in ((first, 1), (after, 2)):
        await restore(here.resources.store, key, here.folder / "restored")
        assert (here.folder / "restored" / "a").read_text() == "line\n" * lines


async def test_a_file_with_a_secret_is_skipped_and_named(
    harness: ConversationHarness, tmp_path: Path
) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "TOKEN").write_text("a-value-that-nobody-else-has")
    here = await on_machine(harness, "here")
    here = replace(here, resources=replace(here.resources, secrets=Secrets(secrets)))
    steps = (
        terminal_call("echo one > a; echo $TOKEN > .env; echo $TOKEN | base64 > b; touch $TOKEN"),
        text_answer("done"),
    )
    async with here.worker():
        spec = here.spec(*steps, tools=EDITING, secrets=("TOKEN",))
        talk = await here.client.start("go", spec)
        await talk.wait_for_turn()
    [files] = await recorded_files(talk)
    assert files.left_out.keys() == {".env", "b"}
    assert "TOKEN" in files.left_out[".env"]
    assert files.snapshot is not None
    await restore(here.resources.store, files.snapshot, here.folder / "restored")
    assert [path.name for path in (here.folder / "restored").iterdir()] == ["a"]
    value = (secrets / "TOKEN").read_bytes()
    store = here.folder / "store"
    assert not [path for path in store.rglob("*") if path.is_file() and value in path.read_bytes()]
    assert value in (here.resources.workspaces / talk.id / ".env").read_bytes()
