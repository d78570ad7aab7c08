"""The newest frames of a conversation, as its clients read them."""

import asyncio

import pytest

from perdure.gateway.following.frame_buffer import FellBehind, FrameBuffer
from perdure.gateway.following.ready_frame import ReadyFrame, make_durable


def frames(*texts: str) -> list[ReadyFrame]:
    return [ReadyFrame("status", text) for text in texts]


def test_each_reader_takes_each_frame_once_from_where_it_began() -> None:
    buffer = FrameBuffer(max_frames=10, max_chars=100)
    with buffer.read_from_end(asyncio.Event()) as first:
        buffer.publish(frames("a", "b"))
        with buffer.read_from_end(asyncio.Event()) as second:
            buffer.publish(frames("c"))
            assert [frame.text for frame in first.take()] == ["a", "b", "c"]
            assert [frame.text for frame in second.take()] == ["c"]
            assert first.take() == second.take() == []
            assert first.wake.is_set() is False
            buffer.publish(frames("d"))
            assert first.wake.is_set()
            assert [frame.text for frame in second.take()] == ["d"]


def test_what_all_readers_have_is_not_kept() -> None:
    buffer = FrameBuffer(max_frames=10, max_chars=100)
    with buffer.read_from_end(asyncio.Event()) as slow, buffer.read_from_end(asyncio.Event()) as it:
        buffer.publish(frames("a", "b"))
        it.take()
        assert buffer.first == 0
        slow.take()
        assert buffer.first == buffer.end == 2
    buffer.publish(frames("c"))
    with buffer.read_from_end(asyncio.Event()):
        assert buffer.end == 3


@pytest.mark.parametrize(("count", "size"), [(4, 1), (2, 60)])
def test_a_reader_that_is_too_far_behind_is_told(count: int, size: int) -> None:
    buffer = FrameBuffer(max_frames=3, max_chars=100)
    with buffer.read_from_end(asyncio.Event()) as reader:
        for _ in range(count - 1):
            buffer.publish(frames("x" * size))
        assert buffer.first == 0
        buffer.publish(frames("x" * size))
        with pytest.raises(FellBehind):
            reader.take()


def test_one_frame_that_is_larger_than_the_buffer_is_delivered() -> None:
    buffer = FrameBuffer(max_frames=3, max_chars=10)
    with buffer.read_from_end(asyncio.Event()) as reader:
        buffer.publish(frames("x" * 100))
        assert len(reader.take()) == 1


@pytest.mark.parametrize(
    ("body", "entry"),
    [
        (b'{"a":1}', '{"a":1}'),
        (b'{"a":\n 1}', '{"a":  1}'),
        (b'{"a":NaN,"b":[-Infinity]}', '{"a":"NaN","b":["-Infinity"]}'),
        ('{"a":"\u2028 NaN ü"}'.encode(), '{"a":"\u2028 NaN ü"}'),
    ],
)
def test_an_entry_is_sent_as_it_is_stored_where_that_is_json(body: bytes, entry: str) -> None:
    frame = make_durable(7, body)
    assert frame.text == f'{{"kind":"durable","seq":7,"entry":{entry}}}'
    assert frame.sse == f"id: 7\nevent: durable\ndata: {frame.text}\n\n".encode()
