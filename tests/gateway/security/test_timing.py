"""A stranger's conversation takes as long as one that does not exist: nobody tells them apart."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import pytest
import pytest_asyncio
import temporalio.client

from perdure.client.ids import new_conversation_id
from tests.gateway.security.raw import build_request
from tests.gateway.security.routes import Ids
from tests.gateway.security.scene import make_annas, open_stage
from tests.gateway.stage import GatewayStage

pytestmark = [pytest.mark.longest, pytest.mark.timeout(900)]

TRIES = 10_000

CONTROL_TRIES = 300

MAX_LEAN = 0.06
"""How far from a half the chance may be that the one takes longer than the other."""

PATHS = ("", "?owner=anna", "/events", "/events?owner=anna", "/stream?owner=anna")


def chance_of_longer(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the chance that one of the first takes longer than one of the second.

    This is U of Mann and Whitney by the number of pairs; a tie counts a half.
    """
    ranked = sorted([(value, 0) for value in first] + [(value, 1) for value in second])
    below = ties = wins = 0.0
    start = 0
    while start < len(ranked):
        end = start
        while end < len(ranked) and ranked[end][0] == ranked[start][0]:
            end += 1
        ones = sum(kind for _, kind in ranked[start:end])
        zeros = end - start - ones
        wins += zeros * below
        ties += zeros * ones
        below += ones
        start = end
    return (wins + ties / 2) / (len(first) * len(second))


@dataclass
class Line:
    """A connection that is kept, with one request after the other."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def time(self, request: bytes) -> tuple[float, int]:
        """Return the seconds until the head of the answer is there, and its status."""
        began = perf_counter()
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        took = perf_counter() - began
        length = next(
            int(line.partition(b":")[2])
            for line in head.lower().splitlines()
            if line.startswith(b"content-length")
        )
        await self.reader.readexactly(length)
        return took, int(head[9:12])


@dataclass
class Scene:
    stage: GatewayStage
    ids: Ids

    def request(self, path: str, conversation_id: str) -> bytes:
        headers = {
            "Host": "127.0.0.1",
            "Connection": "keep-alive",
            "Authorization": self.stage.ben.headers["authorization"],
        }
        return build_request(f"/v1/conversations/{conversation_id}{path}", headers=headers)

    async def compare(
        self, first: bytes, second: bytes, tries: int, statuses: tuple[int, int]
    ) -> float:
        """Return the chance that the first request takes longer, each of them so many times."""
        host, port = self.stage.url.removeprefix("http://").split(":")
        line = Line(*await asyncio.open_connection(host, int(port)))
        times: tuple[list[float], list[float]] = ([], [])
        pair = ((first, 0), (second, 1))
        for _ in range(tries):
            for request, kind in random.sample(pair, 2):
                took, status = await line.time(request)
                assert status == statuses[kind]
                times[kind].append(took)
        line.writer.close()
        return chance_of_longer(*times)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scene(
    temporal: temporalio.client.Client, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Scene]:
    async with open_stage(temporal, tmp_path_factory.mktemp("timed")) as stage:
        yield Scene(stage, await make_annas(stage))


@pytest.mark.parametrize("path", PATHS)
async def test_a_strangers_conversation_takes_as_long_as_none(scene: Scene, path: str) -> None:
    strange = scene.request(path, scene.ids.conversation_id)
    absent = scene.request(path, new_conversation_id())
    tries = TRIES // len(PATHS)
    chance = await scene.compare(strange, absent, tries, (404, 404))
    print(f"{path or '(itself)'}: {chance:.3f} in {tries:,} tries of both")
    assert abs(chance - 0.5) < MAX_LEAN


async def test_what_takes_longer_is_told(scene: Scene) -> None:
    """Otherwise the comparison would find nothing whatever there was."""
    absent = scene.request("", new_conversation_id())
    unknown = scene.request("/nothing", new_conversation_id())
    chance = await scene.compare(absent, unknown, CONTROL_TRIES, (404, 404))
    assert abs(chance - 0.5) > 2 * MAX_LEAN


def test_the_chance_is_that_of_all_pairs() -> None:
    chosen = random.Random(1)
    for _ in range(50):
        first = [chosen.randrange(6) for _ in range(chosen.randint(1, 20))]
        second = [chosen.randrange(6) for _ in range(chosen.randint(1, 20))]
        wins = sum((a > b) + (a == b) / 2 for a in first for b in second)
        assert chance_of_longer(first, second) == pytest.approx(wins / len(first) / len(second))
