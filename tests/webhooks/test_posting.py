"""One post to a server of the test's own."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from perdure.errors import Invalid
from perdure.webhooks.networks import Networks, parse_networks
from perdure.webhooks.posting import Answer, Unanswered, parse_retry_after, post
from tests.webhook_receiver import hang, run_receiver, say

LOOPBACK = parse_networks(["127.0.0.1/32"])


async def send(url: str, networks: Networks = LOOPBACK, max_wait: float = 5.0) -> Answer:
    return await post(url, b"{}", {"webhook-id": "1"}, networks, max_wait)


async def test_the_status_and_the_wait_are_returned() -> None:
    async with run_receiver() as receiver:
        receiver.answers["/a"] = [say(429, Retry_After="7"), say(204)]
        assert await send(f"{receiver.url}/a") == Answer(429, 7.0)
        assert await send(f"{receiver.url}/a") == Answer(204)
        assert [it.body for it in receiver.posts] == [b"{}", b"{}"]


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "2130706433", "[::1]", "\uff11\uff12\uff17\u30020\u30020\u30021"],
)
async def test_no_name_of_a_private_address_is_connected_to(host: str) -> None:
    async with run_receiver() as receiver:
        port = receiver.url.rpartition(":")[2]
        with pytest.raises((Invalid, Unanswered)):
            await send(f"http://{host}:{port}/a", Networks())
        assert receiver.posts == []


async def test_a_name_is_connected_to_by_the_addresses_that_were_checked() -> None:
    async with run_receiver() as receiver:
        port = receiver.url.rpartition(":")[2]
        assert await send(f"http://localhost:{port}/a") == Answer(204)


async def test_a_post_follows_so_many_redirects_and_no_further_ones() -> None:
    async with run_receiver() as receiver:
        for number in range(3):
            receiver.answers[f"/{number}"] = [say(307, Location=f"/{number + 1}")]
        assert await send(f"{receiver.url}/0") == Answer(204)
        receiver.answers["/3"] = [say(308, Location="/4")]
        with pytest.raises(Unanswered, match="more than 3 times"):
            await send(f"{receiver.url}/0")
        receiver.answers["/get"] = [say(302, Location="/0")]
        assert await send(f"{receiver.url}/get") == Answer(302)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "gopher://127.0.0.1/", "https://"])
async def test_a_redirect_to_no_address_of_http_is_refused(location: str) -> None:
    async with run_receiver() as receiver:
        receiver.answers["/a"] = [say(307, Location=location)]
        with pytest.raises(Invalid, match="no URL of http"):
            await send(f"{receiver.url}/a")


async def test_a_receiver_that_hangs_or_is_not_there_is_named_so() -> None:
    async with run_receiver() as receiver:
        receiver.answers["/a"] = [hang]
        with pytest.raises(Unanswered, match=r"did not answer within 0\.2 s"):
            await send(f"{receiver.url}/a", max_wait=0.2)
        gone = receiver.url
    with pytest.raises(Unanswered, match="was not reached"):
        await send(f"{gone}/a")


async def test_a_receiver_that_talks_no_http_is_named_so() -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"a" * 100_000 + b"\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unanswered, match="was not reached"):
            await send(f"http://127.0.0.1:{port}/a")


@pytest.mark.parametrize(
    ("text", "wait"),
    [("7", 7.0), ("0", 0.0), ("9" * 12, 86_400.0), ("soon", None), ("-1", None), ("٣", None)],
)
def test_a_wait_is_seconds(text: str, wait: float | None) -> None:
    assert parse_retry_after({"Retry-After": text}) == wait


def test_a_wait_is_a_date() -> None:
    at = datetime.now(UTC) + timedelta(seconds=60)
    wait = parse_retry_after({"Retry-After": format_datetime(at, usegmt=True)})
    assert wait is not None
    assert 50 < wait <= 60
    assert parse_retry_after({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert parse_retry_after({}) is None
