"""However an output comes in pieces, the model is shown its beginning and its end."""

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tools.conftest import Place
from tools.output import SHOWN, Output

PIECES = st.lists(
    st.sampled_from([b"a", b"\xc3", b"\xa9\xff", "€".encode() * 5000, b"x" * 9999]), max_size=12
)


@given(PIECES)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
async def test_what_is_shown_is_the_head_and_the_tail_of_the_whole(
    place: Place, pieces: Sequence[bytes]
) -> None:
    whole = b"".join(pieces).decode(errors="replace")
    with Output() as output:
        for piece in pieces:
            output.take(piece)
        newest = output.newest(100)
        text, key = await output.shown(place.context)
    # Of a letter that may still be completed, nothing is told.
    assert newest in (whole[-100:], whole[:-1][-100:])
    if len(whole) <= SHOWN:
        assert (text, key) == (whole, None)
    else:
        assert text.startswith(whole[: SHOWN // 2] + f"\n[... {len(whole) - SHOWN:,} characters")
        assert text.endswith("...]\n" + whole[-SHOWN // 2 :])
        assert await place.kept(key) == b"".join(pieces)
