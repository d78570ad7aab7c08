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

from perdure.embedded.discovery import find_stack
from perdure.embedded.errors import FolderTaken, FolderUnusable, ProcessFailed
from perdure.embedded.record import StackInfo, merge_environment, read_stack_info
from perdure.embedded.stack import Stack
from tests.embedded.processes import SLEEP_COMMAND, is_alive, wait_until

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


async def test_a_second_stack_in_the_same_folder_is_refused(stack: Stack) -> None:
    with pytest.raises(FolderTaken, match=r"Another perdure stack runs in .*take another folder"):
        await Stack.start(stack.info.folder, ui=False, worker=SLEEP_COMMAND)
    assert await find_stack(stack.info.folder) == stack.info


async def test_the_stack_record_is_readable_only_by_its_owner(stack: Stack) -> None:
    assert stack.info.pids["supervisor"] == os.getpid()
    assert (stack.info.folder / "stack.json").stat().st_mode & 0o777 == 0o600


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


async def test_a_worker_that_is_killed_is_started_again(tmp_path: Path) -> None:
    lines: list[str] = []
    stack = await Stack.start(tmp_path, ui=False, worker=SLEEP_COMMAND, report=lines.append)
    first = stack.info.pids["worker"]
    os.kill(first, signal.SIGKILL)
    await wait_until(lambda: len(lines) == 1)
    second = stack.info.pids["worker"]
    info = await find_stack(tmp_path)
    assert info is not None
    assert info.pids["worker"] == second
    assert is_alive(second)
    assert lines == [f"worker {first} died (signal 9); started {second}"]
    await stack.stop()
    assert not is_alive(second)


@pytest.mark.long
async def test_a_worker_that_keeps_dying_is_started_again_and_again(tmp_path: Path) -> None:
    lines: list[str] = []
    hopeless = [sys.executable, "-c", "raise SystemExit(7)"]
    stack = await Stack.start(tmp_path, ui=False, worker=hopeless, report=lines.append)
    await wait_until(lambda: len(lines) >= 3)
    await stack.stop()
    assert all("died (exit code 7)" in line for line in lines)


async def test_the_loss_of_a_server_is_reported(tmp_path: Path) -> None:
    stack = await Stack.start(tmp_path, ui=False, worker=SLEEP_COMMAND)
    os.kill(stack.info.pids["temporal"], signal.SIGKILL)
    with pytest.raises(
        ProcessFailed, match=r"temporal ended \(signal 9\); the end of .*temporal.log"
    ):
        await stack.wait()
    await stack.stop()


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


async def test_a_part_that_fails_to_start_leaves_nothing_running(tmp_path: Path) -> None:
    (tmp_path / "seaweed").mkdir()
    (tmp_path / "seaweed" / "filerldb2").write_text("not a folder")
    with pytest.raises(ProcessFailed, match=r"(?s)weed .*filerldb2"):
        await Stack.start(tmp_path, ui=False, worker=SLEEP_COMMAND)
    assert not list(tmp_path.rglob("*.pid"))
    assert await find_stack(tmp_path) is None
    assert not (tmp_path / "stack.json").exists()


async def test_a_missing_worker_program_leaves_nothing_running(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match="worker cannot be run"):
        await Stack.start(tmp_path, ui=False, worker=[str(tmp_path / "missing")])
    assert not list(tmp_path.rglob("*.pid"))


async def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderUnusable, match="Nothing can be kept in"):
        await Stack.start(tmp_path / "file", worker=SLEEP_COMMAND)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the sockets of a process from /proc")
async def test_nothing_listens_beyond_this_machine(stack: Stack) -> None:
    for name in ("temporal", "weed"):
        addresses = listening_addresses(stack.info.pids[name])
        assert addresses == {"127.0.0.1"}, name
