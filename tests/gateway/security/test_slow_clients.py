"""Clients that do not send what they began, or do not take what they asked for.

They are cut off in time, the memory of the gateway's process does not grow by them, and others are
served meanwhile.
"""

import asyncio
import contextlib
import itertools
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import httpx
import pytest
import pytest_asyncio
import temporalio.client

from perdure.embedded.ports import choose_ports
from perdure.storage.credentials.api_keys import create_api_key
from perdure.storage.files import FileStore
from perdure.storage.store import S3Access
from reliability.chaos.environment import worker_environment
from reliability.following.gateways import GatewayProcess
from tests.gateway.page.long_logs import write_long_log
from tests.gateway.security.attacks.attack import Target
from tests.gateway.security.attacks.half_open import HALF_OPEN, LARGE_BODY, POST
from tests.gateway.security.attacks.slow_readers import SlowReader, slow_readers
from tests.gateway.security.crowd import (
    Crowd,
    allow_files,
    count_connections,
    memory_of,
    send_all,
)
from tests.gateway.security.impatient import SECONDS, serve_impatient_gateway

pytestmark = pytest.mark.long

MB = 1024 * 1024

EVENTS = 3000

HALF_OPEN_COUNT = 10_000

OPEN_AT_ONCE = 50

SLOW_READERS = 60
"""Connections of each kind of slow reader."""

HALF_BODIES = 100

SMALL_BUFFER = 4096
"""Bytes that the kernel takes for a slow reader."""

PATIENCE = 60.0
"""Seconds in which whoever is to be cut off has to be; the gateway's limits are a tenth of it."""


@dataclass
class Attacked:
    """A gateway process, and what the attacker knows."""

    process: GatewayProcess
    target: Target
    annas_key: str
    at_rest: int = 0
    """Bytes of memory of the process before."""

    @property
    def pid(self) -> int:
        assert self.process.process is not None
        assert self.process.process.pid is not None
        return self.process.process.pid

    def memory(self) -> int:
        return memory_of(self.pid)

    def connections(self) -> int:
        return count_connections(self.pid, self.process.port)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def attacked(
    temporal: temporalio.client.Client, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Attacked]:
    folder = tmp_path_factory.mktemp("slow")
    store = FileStore(folder / "store")
    conversation_id = await write_long_log(store, folder / "store", "ben", EVENTS)
    address = temporal.service_client.config.target_host
    env = {
        **worker_environment(address, "", S3Access()),
        "PERDURE_STORE": (folder / "store").as_uri(),
        "PERDURE_GATEWAY_RATES": '{"read": 6e6, "write": 6e6, "costly": 6e6, "failure": 6e6}',
    }
    [port] = choose_ports(folder / "ports.json", ("gateway",)).values()
    process = GatewayProcess(port, env, folder / "gateway.log", serve_impatient_gateway)
    await process.start()
    keys = {
        user: (await create_api_key(store, user, "test", ("read", "write"))).secret
        for user in ("anna", "ben")
    }
    target = Target(f"127.0.0.1:{port}", conversation_id, keys["ben"])
    made = Attacked(process, target, keys["anna"])
    await warm_up(made)
    made.at_rest = made.memory()
    try:
        yield made
    finally:
        await process.stop()


async def warm_up(attacked: Attacked) -> None:
    """Ask for everything once: what is read for the first time is cached."""
    headers = {"Authorization": f"Bearer {attacked.target.key}"}
    async with httpx.AsyncClient(base_url=attacked.process.url, headers=headers) as ben:
        path = f"/v1/conversations/{attacked.target.id}"
        for asked in (
            f"{path}/events?limit=1000",
            f"{path}/export",
            f"{path}/export?format=html",
            f"{path}/stream?follow=false",
            "/openapi.json",
            "/",
        ):
            answer = await ben.get(asked, timeout=60)
            assert answer.status_code == 200, answer.text
            assert len(answer.content) > 1000


@contextlib.asynccontextmanager
async def serving_others(attacked: Attacked) -> AsyncIterator[Callable[[], int]]:
    """Ask as Anna all the while; yield a function that counts the answers so far."""
    answered = 0

    async def ask() -> None:
        nonlocal answered
        headers = {"Authorization": f"Bearer {attacked.annas_key}"}
        async with httpx.AsyncClient(base_url=attacked.process.url, headers=headers) as anna:
            while True:
                mine = await anna.get("/v1/me", timeout=PATIENCE)
                assert mine.status_code == 200, mine.text
                noted = await anna.post("/v1/conversations", json={"x": 1}, timeout=PATIENCE)
                assert noted.status_code == 422, noted.text
                answered += 1
                await asyncio.sleep(0.05)

    asking = asyncio.create_task(ask())
    try:
        yield lambda: answered
    finally:
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
    assert answered > 3


async def wait_until_gone(attacked: Attacked, before: int) -> None:
    """Wait until the process has no more connections than before, and Anna's."""
    async with asyncio.timeout(PATIENCE):
        while attacked.connections() > before + 1:
            await asyncio.sleep(0.2)


@dataclass
class Most:
    """The most connections and bytes of memory that the process had."""

    connections: int = 0
    memory: int = 0


@contextlib.asynccontextmanager
async def watching_process(attacked: Attacked) -> AsyncIterator[Most]:
    """Measure the process while inside."""
    most = Most()

    async def watch() -> None:
        while True:
            most.connections = max(most.connections, attacked.connections())
            most.memory = max(most.memory, attacked.memory())
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch())
    try:
        yield most
    finally:
        watching.cancel()


async def open_half(attacked: Attacked, count: int) -> Most:
    """Open so many connections that send no whole request, and wait until all are closed."""
    crowd = Crowd(attacked.process.port)
    try:
        async with watching_process(attacked) as most:
            kinds = itertools.cycle(HALF_OPEN.values())
            for _ in range(0, count, OPEN_AT_ONCE):
                some = itertools.islice(kinds, OPEN_AT_ONCE)
                await asyncio.gather(*[open_one(crowd, sent) for sent in some])
            async with asyncio.timeout(PATIENCE):
                await crowd.wait_until_closed()
        return most
    finally:
        crowd.close()


async def open_one(crowd: Crowd, sent: bytes) -> None:
    await send_all(await crowd.open(), [sent])


async def test_10_000_half_open_connections_take_nothing_from_others(attacked: Attacked) -> None:
    count = allow_files(HALF_OPEN_COUNT)
    before, memory = attacked.connections(), attacked.memory()
    async with serving_others(attacked) as count_answers:
        first = await open_half(attacked, count)
        answers = count_answers()
        await wait_until_gone(attacked, before)
        between = attacked.memory()
        await open_half(attacked, count // 10)
    await wait_until_gone(attacked, before)
    after = attacked.memory()
    sizes = [size // MB for size in (memory, first.memory, between, after)]
    print(f"{count:,} connections, {first.connections:,} kept, {answers} answers, {sizes} MB")
    assert answers > 3
    assert 100 < first.connections < 2500
    assert first.memory < memory + 200 * MB
    assert after < between + 30 * MB


async def test_half_bodies_of_somebody_with_a_key_are_few(attacked: Attacked) -> None:
    before, memory = attacked.connections(), attacked.memory()
    crowd = Crowd(attacked.process.port)
    head = POST + LARGE_BODY % attacked.target.key.encode()
    try:
        async with serving_others(attacked), watching_process(attacked) as most:
            opened = [await crowd.open() for _ in range(HALF_BODIES)]
            await asyncio.gather(*[send_all(it, [head]) for it in opened])
            async with asyncio.timeout(PATIENCE):
                await crowd.wait_until_closed()
    finally:
        crowd.close()
    await wait_until_gone(attacked, before)
    print(f"{memory // MB} MB, then {most.memory // MB} MB")
    assert most.memory < memory + 200 * MB < memory + HALF_BODIES * len(LARGE_BODY)


@pytest.mark.parametrize(
    "reader",
    [
        pytest.param(it, marks=[pytest.mark.longest] if nth % 3 else [], id=it.name)
        for nth, it in enumerate(slow_readers())
    ],
)
async def test_who_does_not_read_is_cut_off(attacked: Attacked, reader: SlowReader) -> None:
    """What is kept of a client that is gone would show in the rows behind it."""
    before = attacked.connections()
    async with serving_others(attacked):
        most = await read_nothing(attacked, reader, before)
    print(f"{reader.name}: {most // MB} MB, {attacked.at_rest // MB} MB at rest")
    assert most < attacked.at_rest + 150 * MB


async def read_nothing(attacked: Attacked, reader: SlowReader, before: int) -> int:
    """Be many slow readers until all are cut off; return the most memory of the process."""
    crowd = Crowd(attacked.process.port, SMALL_BUFFER)
    request = reader.build(attacked.target)
    try:
        connections = [await crowd.open() for _ in range(SLOW_READERS)]
        more = itertools.repeat(reader.more) if reader.more else ()
        tasks = [
            asyncio.create_task(send_all(it, itertools.chain([request], more)))
            for it in connections
        ]
        tasks.append(asyncio.create_task(read_byte_by_byte(connections[::2])))
        async with watching_process(attacked) as most, asyncio.timeout(PATIENCE):
            await asyncio.sleep(1)  # the process accepts them
            while attacked.connections() > before + 1:
                await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return most.memory
    finally:
        crowd.close()


async def read_byte_by_byte(connections: list[socket.socket]) -> None:
    """Read a byte a second of each."""
    while True:
        for it in connections:
            with contextlib.suppress(OSError):
                it.recv(1)
        await asyncio.sleep(1)


def test_the_limits_of_time_are_far_below_the_patience_of_these_tests() -> None:
    assert SECONDS * 5 < PATIENCE
