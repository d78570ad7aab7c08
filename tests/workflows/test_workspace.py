"""The files of a conversation outlive the machine on which they were made."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import temporalio.client

from client.client import Client
from client.conversation import Conversation
from client.converter import CONVERTER
from client.fork import fork
from events.files import Files
from storage.snapshots.restore import restore
from tests.house import House, calls, says
from tests.workflows.watching import entries, observed
from tools.secrets.registry import Secrets
from worker import home_of

EDITING = ("terminal", "delegate", "think", "finish")


async def at(house: House, name: str) -> House:
    """The house on a machine of its own: the same store and queue, and an empty disk."""
    disk, queue = house.folder / name, house.client.task_queue
    world = replace(house.world, workspaces=disk, home=home_of(disk, queue))
    address = house.client.temporal.service_client.config.target_host
    temporal = await temporalio.client.Client.connect(address, data_converter=CONVERTER)
    client = Client(temporal, house.client.store, task_queue=queue)
    return replace(house, client=client, world=world)


def runs(command: str) -> dict[str, object]:
    return calls(("terminal", {"command": command}))


async def kept(talk: Conversation) -> list[Files]:
    return [entry.files for entry in await entries(talk) if entry.files]


@pytest.mark.long
async def test_another_machine_goes_on_with_the_files(house: House) -> None:
    here, there = await at(house, "here"), await at(house, "there")
    spec = here.spec(
        runs("mkdir -p empty a && echo one > a/b && chmod 750 a/b && ln -s a/b link"),
        says("written"),
        runs("cat link; stat -c %a a/b; ls -d empty; echo two >> a/b"),
        runs("cat a/b"),
        says("read"),
        tools=EDITING,
        heartbeat_timeout=1,
    )
    async with here.worker():
        talk = await here.client.start("write", spec)
        await talk.finished()
    shutil.rmtree(here.world.workspaces)
    async with there.worker():
        await talk.send("read", "read")
        await talk.finished("read")

    _, read, again = await observed(talk)
    assert "one\n750\nempty\n" in read
    assert again.startswith("one\ntwo\n")
    first, moved = await kept(talk)
    assert (first.home, moved.home) == (here.world.home, there.world.home)


async def test_a_conversation_stays_where_its_files_are(house: House) -> None:
    here, there = await at(house, "here"), await at(house, "there")
    steps = [runs(f"echo {number} >> file") for number in range(6)]
    spec = here.spec(runs("pwd"), says("begun"), *steps, says("done"), tools=EDITING)
    async with here.worker():
        talk = await here.client.start("go", spec)
        await talk.finished()
        async with there.worker():
            await talk.send("go on", "on")
            await talk.finished("on")

    assert {files.home for files in await kept(talk)} == {here.world.home}
    assert (here.world.workspaces / talk.id / "file").read_text() == "0\n1\n2\n3\n4\n5\n"
    assert not (there.world.workspaces / talk.id).exists()


async def test_what_changes_nothing_is_not_told_of(house: House) -> None:
    here = await at(house, "here")
    spec = here.spec(runs("echo one > a"), runs("cat a"), runs("true"), says("done"), tools=EDITING)
    async with here.worker():
        talk = await here.client.start("go", spec)
        await talk.finished()
    assert len(await kept(talk)) == 1


async def test_a_fork_has_the_files_of_its_slot(house: House) -> None:
    here = await at(house, "here")
    steps = (runs("echo one > a"), runs("echo two >> a"), says("done"))
    async with here.worker():
        talk = await here.client.start("go", here.spec(*steps, tools=EDITING))
        await talk.finished()
        early = next(entry.seq for entry in await entries(talk) if entry.files)
        other = (await fork(here.client, talk.id, early)).conversation
        await other.send("look", "look")
        await other.finished("look")

    files = [here.world.workspaces / one.id / "a" for one in (talk, other)]
    assert [file.read_text() for file in files] == ["one\ntwo\n", "one\ntwo\n"]


async def test_a_folder_of_the_users_own_is_kept_only_where_asked_for(
    house: House, tmp_path: Path
) -> None:
    here = await at(house, "here")
    own = tmp_path / "own"
    own.mkdir()
    async with here.worker():
        for snapshots in (None, True):
            spec = here.spec(
                runs(f"echo {snapshots} > a"),
                says("done"),
                tools=EDITING,
                workspace=str(own),
                snapshots=snapshots,
            )
            talk = await here.client.start("go", spec)
            await talk.finished()
            assert len(await kept(talk)) == bool(snapshots)


async def test_files_that_cannot_be_kept_are_told_of_and_the_work_goes_on(house: House) -> None:
    here = await at(house, "here")
    steps = (runs("truncate -s 2G huge"), runs("rm huge; echo one > a"), says("done"))
    async with here.worker():
        talk = await here.client.start("go", here.spec(*steps, tools=EDITING))
        assert (await talk.finished()).status == "finished"
    huge, then = await kept(talk)
    assert huge.snapshot is None
    assert huge.fault is not None
    assert "huge" in huge.fault
    assert then.snapshot is not None
    assert then.fault is None


async def test_a_delegated_conversation_works_on_the_files_of_its_parent(house: House) -> None:
    here = await at(house, "here")
    # Both are given the same answers, and the other one has nobody to delegate to.
    steps = (runs("echo line >> a"), calls(("delegate", {"task": "go on"})), says("over"))
    async with here.worker():
        talk = await here.client.start("go", here.spec(*steps, tools=EDITING))
        await talk.finished()
    first, after = [files.snapshot for files in await kept(talk)]
    assert first is not None
    assert after is not None
    for key, lines in ((first, 1), (after, 2)):
        await restore(here.world.store, key, here.folder / "restored")
        assert (here.folder / "restored" / "a").read_text() == "line\n" * lines


async def test_a_file_with_a_secret_in_it_stays_where_it_is_and_is_named(
    house: House, tmp_path: Path
) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "TOKEN").write_text("a-value-that-nobody-else-has")
    here = await at(house, "here")
    here = replace(here, world=replace(here.world, secrets=Secrets(secrets)))
    steps = (
        runs("echo one > a; echo $TOKEN > .env; echo $TOKEN | base64 > b; touch $TOKEN"),
        says("done"),
    )
    async with here.worker():
        spec = here.spec(*steps, tools=EDITING, secrets=("TOKEN",))
        talk = await here.client.start("go", spec)
        await talk.finished()
    [files] = await kept(talk)
    assert files.left_out.keys() == {".env", "b"}
    assert "TOKEN" in files.left_out[".env"]
    assert files.snapshot is not None
    await restore(here.world.store, files.snapshot, here.folder / "restored")
    assert [path.name for path in (here.folder / "restored").iterdir()] == ["a"]
    value = (secrets / "TOKEN").read_bytes()
    store = here.folder / "store"
    assert not [path for path in store.rglob("*") if path.is_file() and value in path.read_bytes()]
    assert value in (here.world.workspaces / talk.id / ".env").read_bytes()
