"""Processes that stand still while they replace an object by its version."""

import asyncio
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from perdure.storage.files import FileStore
from tests.storage.counting_writer import KEY

ROOT = Path(__file__).parents[2]

WRITERS = 3

ROUNDS = 20

PATIENCE = 30.0
"""Seconds in which the others go on, also on a busy machine."""


async def start_writer(folder: Path) -> Process:
    command = (sys.executable, "-m", "tests.storage.counting_writer", str(folder))
    return await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=PIPE, stdout=PIPE)


async def read_count(store: FileStore) -> int:
    return int(await store.read(KEY) or b"0")


async def wait_for_count(store: FileStore, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while await read_count(store) < count:
            await asyncio.sleep(0.01)


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_one_that_stands_still_keeps_nobody_waiting_and_loses_no_count(
    tmp_path: Path,
) -> None:
    store = FileStore(tmp_path)
    await store.create(KEY, b"0")
    writers = [await start_writer(tmp_path) for _ in range(WRITERS)]
    choice = random.Random(7)
    await wait_for_count(store, 10)
    for _ in range(ROUNDS):
        frozen = choice.choice(writers)
        await asyncio.sleep(choice.random() / 5)
        os.kill(frozen.pid, signal.SIGSTOP)
        await wait_for_count(store, await read_count(store) + 5)
        os.kill(frozen.pid, signal.SIGCONT)
    outputs = [(await writer.communicate(b""))[0] for writer in writers]
    assert sum(int(output) for output in outputs) == await read_count(store)
    await store.close()
