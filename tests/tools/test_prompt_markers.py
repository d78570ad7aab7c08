"""Markers are separated from output, independently of chunk boundaries."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from perdure.tools.shell.prompt_markers import (
    MAX_MARKER_BYTES,
    CommandEnded,
    CommandStarted,
    ImagePart,
    Marker,
    MarkerParser,
)

SECRET = "0123456789abcdef"
START = f"\x1e{SECRET} ".encode()
STREAM = b"".join(
    [
        *(START, b"1 begun 77\x00/place\x00"),
        *(b"out\x1eput\n", START[:9], b"\x00", START, b"1 ended"),
        *(START, b"1 ended 130\x00/place/a b\n\xff\x00"),
        *(b"later", START, b"2 begun 77\x00/\x00", START, b"2 image 1\x00aGk=\x00"),
        *(START, b"2 ended 0\x00/\x00", b"\x1e"),
    ]
)


def split(*chunks: bytes) -> list[bytes | Marker]:
    """Split the chunks, and join neighbouring output."""
    marks, parts = MarkerParser(SECRET), list[bytes | Marker]()
    for part in (part for chunk in chunks for part in marks.split(chunk)):
        if isinstance(part, bytes) and parts and isinstance(before := parts[-1], bytes):
            parts[-1] = before + part
        else:
            parts.append(part)
    return parts


def test_marks_are_taken_out_of_the_output() -> None:
    assert split(STREAM) == [
        CommandStarted(1, 77, "/place"),
        b"out\x1eput\n" + START[:9] + b"\x00" + START + b"1 ended",
        CommandEnded(1, 130, "/place/a b\n\ufffd"),
        b"later",
        CommandStarted(2, 77, "/"),
        ImagePart(2, 1, "aGk="),
        CommandEnded(2, 0, "/"),
    ]


@given(st.lists(st.integers(0, len(STREAM))))
def test_parsing_does_not_depend_on_chunk_boundaries(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in itertools.pairwise(places)]
    assert split(*chunks) == split(STREAM)


def test_output_is_held_back_only_where_a_mark_may_begin() -> None:
    assert split(b"text\x1e", b"text") == [b"text\x1etext"]
    assert list(MarkerParser(SECRET).split(b"prompt> ")) == [b"prompt> "]
    endless = START + b"x" * MAX_MARKER_BYTES
    assert split(endless) == [endless]


def test_another_shells_marks_are_output() -> None:
    assert split(b"\x1eother 1 ended 0\x00/\x00") == [b"\x1eother 1 ended 0\x00/\x00"]
