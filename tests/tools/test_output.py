"""An output is cut in the middle, independently of its chunks."""

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.tools.output import MAX_SHOWN_CHARACTERS, Output
from tests.tools.conftest import ToolBench

PIECES = st.lists(
    st.sampled_from([b"a", b"\xc3", b"\xa9\xff", "€".encode() * 5000, b"x" * 9999]), max_size=12
)


@given(PIECES)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
async def test_rendered_output_is_head_and_tail_of_the_whole(
    place: ToolBench, pieces: Sequence[bytes]
) -> None:
    whole = b"".join(pieces).decode(errors="replace")
    with Output() as output:
        for piece in pieces:
            output.write(piece)
        newest = output.tail(100)
        text, key = await output.render(place.context)
    # Of a letter that may still be completed, nothing is told.
    assert newest in (whole[-100:], whole[:-1][-100:])
    if len(whole) <= MAX_SHOWN_CHARACTERS:
        assert (text, key) == (whole, None)
    else:
        assert text.startswith(
            whole[: MAX_SHOWN_CHARACTERS // 2]
            + f"\n[... {len(whole) - MAX_SHOWN_CHARACTERS:,} characters"
        )
        assert text.endswith("...]\n" + whole[-MAX_SHOWN_CHARACTERS // 2 :])
        assert await place.stored(key) == b"".join(pieces)
