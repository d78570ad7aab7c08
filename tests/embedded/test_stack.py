import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
import pytest_asyncio
from temporalio.client import Client

from perdure.embedded.discovery import await_stack, find_stack
from perdure.embedded.errors import FolderTaken, FolderUnusable, ProcessFailed
from perdure.embedded.folder import is_locked, lock_folder
from perdure.embedded.ports import find_free_ports
from perdure.embedded.process import NICENESS
from perdure.embedded.record import StackInfo, merge_environment, read_stack_info
from perdure.embedded.stack import Stack
from perdure.errors import Unreachable
from tests.embedded.processes import SLEEP_COMMAND, is_alive, read_niceness, wait_until

WRITE_ENVIRONMENT_COMMAND = [
    sys.executable,
    "-c",
    "import json, os, pathlib, time\n"
    "path = pathlib.Path(os.environ['PERDURE_DATA'], 'seen')\n"
    "path.with_suffix('.draft').write_text(json.dumps(dict(os.environ)))\n"
    "path.with_suffix('.draft').rename(path)\n"
    "time.sleep(600)",
]


def bucket_of(info: StackInfo) -> Any:
    names = info.environment
    return boto3.resource(
        "s3",
        endpoint_url=names["AWS_ENDPOINT_URL_S3"],
        aws_access_key_id=names["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=names["AWS_SECRET_ACCESS_KEY"],
        region_name=names["AWS_REGION"],
    ).Bucket(info.bucket)


@contextmanager
def start_killed_stack(folder: Path, *how: str) -> Iterator[StackInfo]:
    """Start a stack in another process, and kill that process in the end."""
    command = [sys.executable, "-m", "tests.embedded.start_a_stack", str(folder), *how]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        yield StackInfo.model_validate_json(supervisor.stdout.readline())
        supervisor.kill()


def listening_addresses(pid: int) -> set[str]:
    """List the addresses on which `pid` listens, IPv6 in hexadecimal."""
    links = (str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir())
    own = {link.removeprefix("socket:[").removesuffix("]") for link in links}
    lines = [
        line.split()
        for family in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]
    ]
    addresses = {
        fields[1].split(":")[0] for fields in lines if fields[3] == "0A" and fields[9] in own
    }
    return {ipv4(address) if len(address) == 8 else address for address in addresses}


def ipv4(address: str) -> str:
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(address)))


@pytest_asyncio.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    stack = await Stack.start(tmp_path_factory.mktemp("stack"), ui=False, worker=SLEEP_COMMAND)
    yield stack
    await stack.stop()


@pytest.mark.long
async def test_a_running_stack_is_found_and_a_stopped_one_is_not(tmp_path: Path) -> None:
    assert await find_stack(tmp_path) is None
    stack = await Stack.start(tmp_path, ui=False, worker=SLEEP_COMMAND)
    info = await find_stack(tmp_path)
    pids = stack.info.pids
    assert info == stack.info
    await stack.stop()
    assert await find_stack(tmp_path) is None
    assert read_stack_info(tmp_path) is None
    assert [name for name, pid in pids.items() if is_alive(pid)] == ["supervisor"]


async def test_temporal_and_the_worker_have_a_lower_priority_than_commands(stack: Stack) -> None:
    own, _ = read_niceness(os.getpid())
    pids, lower = stack.info.pids, min(own + NICENESS, 19)
    await wait_until(lambda: read_niceness(pids["worker"])[0] == lower)
    assert read_niceness(pids["temporal"])[0] == lower
    assert read_niceness(pids["weed"])[0] == own


@pytest.mark.long
async def test_data_survives_a_restart_of_the_stack(tmp_path: Path) -> None:
    first = await Stack.start(tmp_path, ui=False, worker=SLEEP_COMMAND)
    client = await Client.connect(first.info.temporal)
    await client.start_workflow("Anything", id="kept", task_queue="nobody")
    bucket_of(first.info).put_object(Key="kept", Body=b"still here")
    await first.stop()
    second = await Stack.start(tmp_path, ui=False, worker=SLEEP_COMMAND)
    again = await Client.connect(second.info.temporal)
    await again.get_workflow_handle("kept").describe()
    body = bucket_of(second.info).Object("kept").get()["Body"].read()
    await second.stop()
    assert body == b"still here"


@pytest.mark.long
async def test_a_second_stack_in_the_same_folder_is_refused(stack: Stack) -> None:
    with pytest.raises(FolderTaken, match=rf"Another perdure stack .*pid {os.getpid()}.*--data"):
        await Stack.start(stack.info.folder, ui=False, worker=SLEEP_COMMAND)
    assert await find_stack(stack.info.folder) == stack.info


async def test_the_stack_record_is_readable_only_by_its_owner(stack: Stack) -> None:
    assert stack.info.pids["supervisor"] == os.getpid()
    assert (stack.info.folder / "stack.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.long
async def test_a_worker_gets_the_addresses_of_temporal_and_the_store(tmp_path: Path) -> None:
    stack = await Stack.start(tmp_path, ui=False, worker=WRITE_ENVIRONMENT_COMMAND)
    await wait_until((tmp_path / "seen").exists)
    seen = json.loads((tmp_path / "seen").read_text())
    info = stack.info
    await stack.stop()
    assert info.environment.items() <= seen.items()
    assert seen["TEMPORAL_ADDRESS"] == info.temporal
    assert seen["PERDURE_STORE"] == "s3://perdure"
    assert seen["PERDURE_DATA"] == str(tmp_path)


def test_a_persons_own_accounts_are_kept_out_of_a_stack() -> None:
    own = {"PATH": "/bin", "AWS_PROFILE": "work", "TEMPORAL_API_KEY": "secret", "AWS_REGION": "eu"}
    assert merge_environment(own, {"AWS_REGION": "us-east-1"}) == {
        "PATH": "/bin",
        "AWS_REGION": "us-east-1",
    }


@pytest.mark.parametrize(
    ("part", "name"),
    [
        pytest.param("temporal", "Temporal", marks=pytest.mark.long),
        pytest.param("weed", "The store", marks=pytest.mark.long),
        pytest.param("worker", "The worker", marks=pytest.mark.long),
    ],
)
async def test_what_is_killed_is_started_again_on_the_same_ports(
    part: str, name: str, tmp_path: Path
) -> None:
    lines: list[str] = []
    stack = await Stack.start(tmp_path, ui=False, worker=SLEEP_COMMAND, report=lines.append)
    before = stack.info
    bucket_of(before).put_object(Key="kept", Body=b"still here")
    os.kill(before.pids[part], signal.SIGKILL)
    await wait_until(lambda: len(lines) == 1)
    after = await await_stack(tmp_path)
    body = bucket_of(before).Object("kept").get()["Body"].read()
    await stack.stop()
    assert after is not None
    assert after.pids[part] != before.pids[part]
    assert {**after.pids, part: 0} == {**before.pids, part: 0}
    assert after.environment == before.environment
    assert body == b"still here"
    assert lines[0].startswith(f"{name} (pid {before.pids[part]}) died by signal 9; it was started")
    assert f"as pid {after.pids[part]}" in lines[0]
    assert not any(is_alive(pid) for pid in after.pids.values() if pid != os.getpid())


@pytest.mark.long
async def test_a_worker_that_fails_at_every_start_ends_the_stack_with_its_reason(
    tmp_path: Path,
) -> None:
    lines: list[str] = []
    hopeless = [sys.executable, "-c", "print('no such setting'); raise SystemExit(7)"]
    stack = await Stack.start(tmp_path, ui=False, worker=hopeless, report=lines.append)
    with pytest.raises(ProcessFailed, match="started 8 times in vain") as failure:
        await stack.wait()
    await stack.stop()
    assert "ended with exit code 7 (no such setting)" in str(failure.value)
    assert str(failure.value).endswith(str(tmp_path / "worker.log"))
    assert len(lines) == 7
    assert "6 times in a row; it is started again in 1.6 s" in lines[5]
    assert str(tmp_path / "worker.log") in lines[5]


@pytest.mark.long
async def test_a_worker_with_wrong_settings_ends_the_stack_at_once(tmp_path: Path) -> None:
    lines: list[str] = []
    refusing = [sys.executable, "-c", "print('Mend it.'); raise SystemExit(2)"]
    stack = await Stack.start(tmp_path, ui=False, worker=refusing, report=lines.append)
    with pytest.raises(ProcessFailed, match=r"exit code 2 \(Mend it\)"):
        await stack.wait()
    await stack.stop()
    assert lines == []


@pytest.mark.long
async def test_a_worker_that_is_killed_again_and_again_is_never_given_up(tmp_path: Path) -> None:
    lines: list[str] = []
    command = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    stack = await Stack.start(tmp_path, ui=False, worker=command, report=lines.append)
    await wait_until(lambda: len(lines) >= 9)
    assert await find_stack(tmp_path) is not None
    await stack.stop()


@pytest.mark.long
async def test_the_ports_are_the_same_at_the_next_start(tmp_path: Path) -> None:
    environments = []
    for _ in range(2):
        stack = await Stack.start(tmp_path, worker=SLEEP_COMMAND)
        environments.append((stack.info.ui, stack.info.environment))
        await stack.stop()
    assert environments[0] == environments[1]


@pytest.mark.long
async def test_the_ports_can_be_chosen(tmp_path: Path) -> None:
    ports = dict(zip(("temporal", "ui", "store"), find_free_ports(3), strict=True))
    stack = await Stack.start(tmp_path, worker=SLEEP_COMMAND, ports=ports)
    info = stack.info
    await stack.stop()
    assert info.temporal.endswith(f":{ports['temporal']}")
    assert info.ui is not None
    assert info.ui.endswith(f":{ports['ui']}")
    assert info.store.endswith(f":{ports['store']}")


@pytest.mark.long
async def test_the_record_names_the_model_keys_of_the_worker_without_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "sk-secret")
    monkeypatch.setenv("GROQ_API_KEY", "")
    stack = await Stack.start(tmp_path, ui=False, worker=SLEEP_COMMAND)
    keys, record = stack.info.worker_variables or (), (tmp_path / "stack.json").read_text()
    await stack.stop()
    assert "MISTRAL_API_KEY" in keys
    assert "GROQ_API_KEY" not in keys
    assert "sk-secret" not in record


@pytest.mark.long
async def test_who_waits_for_a_stack_that_starts_gets_it(tmp_path: Path) -> None:
    start = asyncio.create_task(Stack.start(tmp_path, ui=False, worker=SLEEP_COMMAND))
    await wait_until(lambda: is_locked(tmp_path))
    assert await find_stack(tmp_path) is None
    info = await await_stack(tmp_path)
    stack = await start
    await stack.stop()
    assert info == stack.info


@pytest.mark.long
async def test_who_waits_for_a_stack_that_never_answers_is_told_whose_it_is(tmp_path: Path) -> None:
    lines: list[str] = []
    with (
        await lock_folder(tmp_path),
        pytest.raises(Unreachable, match=rf"pid {os.getpid()}\) has not answered for 1\.5 s"),
    ):
        await await_stack(tmp_path, lines.append, max_wait=1.5)
    assert len(lines) == 1


@pytest.mark.long
@pytest.mark.parametrize("how", [(), ("thread",)], ids=["main-thread", "other-thread"])
async def test_processes_of_a_killed_stack_are_ended_and_its_data_survives(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    with start_killed_stack(tmp_path, *how) as dead:
        bucket_of(dead).put_object(Key="kept", Body=b"still here")
    assert await find_stack(tmp_path) is None
    stack = await Stack.start(tmp_path, ui=False, worker=SLEEP_COMMAND)
    left = [name for name, pid in dead.pids.items() if is_alive(pid)]
    body = bucket_of(stack.info).Object("kept").get()["Body"].read()
    await stack.stop()
    assert left == []
    assert body == b"still here"


@pytest.mark.long
async def test_a_part_that_fails_to_start_leaves_nothing_running(tmp_path: Path) -> None:
    (tmp_path / "seaweed").mkdir()
    (tmp_path / "seaweed" / "filerldb2").write_text("not a folder")
    with pytest.raises(ProcessFailed, match=r"(?s)weed .*filerldb2"):
        await Stack.start(tmp_path, ui=False, worker=SLEEP_COMMAND)
    assert not list(tmp_path.rglob("*.pid"))
    assert await find_stack(tmp_path) is None
    assert not (tmp_path / "stack.json").exists()


@pytest.mark.long
async def test_a_missing_worker_program_leaves_nothing_running(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match="worker cannot be run"):
        await Stack.start(tmp_path, ui=False, worker=[str(tmp_path / "missing")])
    assert not list(tmp_path.rglob("*.pid"))


@pytest.mark.long
async def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderUnusable, match="Nothing can be kept in"):
        await Stack.start(tmp_path / "file", worker=SLEEP_COMMAND)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads the sockets of a process from /proc")
async def test_nothing_listens_beyond_this_machine(stack: Stack) -> None:
    for name in ("temporal", "weed"):
        addresses = listening_addresses(stack.info.pids[name])
        assert addresses == {"127.0.0.1"}, name
