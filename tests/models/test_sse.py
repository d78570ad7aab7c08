"""Server-sent events are parsed from any split of their bytes."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.models.stream_accumulator import parse_events
from tests.models.requests import calm

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(texts, lambda inner: st.dictionaries(texts, inner), max_leaves=4)


async def _body(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def read(*pieces: bytes) -> list[Any]:
    async def collected() -> list[Any]:
        return [event async for event in parse_events(_body(pieces))]

    return asyncio.run(collected())


@calm
@given(st.lists(values, max_size=4), st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.data())
def test_events_do_not_depend_on_the_chunks_of_bytes(
    sent: list[Any], newline: bytes, done: bool, data: st.DataObject
) -> None:
    data_lines = [json.dumps(value, ensure_ascii=False).encode() for value in sent]
    data_lines += [b"[DONE]"] if done else []
    body = b"".join(b"data: " + text + newline * 2 for text in data_lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    edges = [0, *cuts, len(body)]
    pieces = [body[start:end] for start, end in itertools.pairwise(edges)]
    assert read(*pieces) == sent


def test_comments_and_other_fields_are_ignored() -> None:
    assert read(b": ping\n\nevent: x\nid: 3\ndata: 1\n\nretry: 5\n\ndata: 2\n\n") == [1, 2]


def test_an_event_may_have_several_lines_of_data() -> None:
    assert read(b'data: {"a":\ndata: 1}\n\n') == [{"a": 1}]


def test_the_last_event_needs_no_empty_line() -> None:
    assert read(b"data: 1\n\ndata: 2") == [1, 2]


def test_nothing_is_read_after_done() -> None:
    assert read(b"data: 1\n\ndata: [DONE]\n\ndata: 2\n\n") == [1]


def test_unicode_line_separators_do_not_end_a_line() -> None:
    assert read('data: "a\u2028b\u0085c"\n\n'.encode()) == ["a\u2028b\u0085c"]


def test_an_unfinished_event_is_an_error() -> None:
    with pytest.raises(json.JSONDecodeError):
        read(b'data: {"a": ')
