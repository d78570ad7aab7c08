"""Requests in parallel: their order, their number, and their end."""

import asyncio
from contextlib import aclosing

import pytest

from perdure.storage.parallel import map_parallel


class Requests:
    """Requests of which the later ones are answered first."""

    def __init__(self) -> None:
        self.under_way = 0
        self.most = 0
        self.sent: list[int] = []

    async def send(self, number: int) -> int:
        self.sent.append(number)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            for _ in range(100 - number % 100):
                await asyncio.sleep(0)
        finally:
            self.under_way -= 1
        if number == 999:
            raise OSError("no answer")
        return number


async def test_answers_come_in_order_and_64_requests_are_under_way_at_most() -> None:
    requests = Requests()
    answers = [answer async for answer in map_parallel(requests.send, range(300))]
    assert answers == list(range(300))
    assert requests.most == 64


@pytest.mark.parametrize(("taken", "most"), [(1, 5), (4, 12), (20, 36), (200, 264)])
async def test_who_stops_early_has_sent_few_requests_in_vain(taken: int, most: int) -> None:
    requests = Requests()
    async with aclosing(map_parallel(requests.send, range(10_000), first=4)) as answers:
        async for answer in answers:
            if answer + 1 == taken:
                break
    assert taken <= len(requests.sent) <= most
    await asyncio.sleep(0)
    assert requests.under_way == 0


async def test_an_error_ends_the_requests_behind_it() -> None:
    requests = Requests()
    with pytest.raises(OSError, match="no answer"):
        async for _ in map_parallel(requests.send, [1, 999, *range(2, 500)]):
            pass
    await asyncio.sleep(0)
    assert requests.under_way == 0
    assert len(requests.sent) < 100


async def test_nothing_is_mapped_to_nothing() -> None:
    assert [answer async for answer in map_parallel(Requests().send, [])] == []
