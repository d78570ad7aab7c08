"""JSON piece by piece, and on a line."""

import json

from hypothesis import given
from hypothesis import strategies as st

from exports.json_text import compact, document

text = st.text(alphabet=st.sampled_from('a"\\\n\r\u2028\u2029\x85\x1e❤{}[],:'), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=12,
)
fields = st.dictionaries(text, values, max_size=3)


@given(fields, st.lists(values, max_size=3), fields)
def test_a_document_in_pieces_is_the_one_that_would_be_written_at_once(
    head: dict[str, object], items: list[object], tail: dict[str, object]
) -> None:
    head = {f"head {key}": value for key, value in head.items()}
    tail = {f"tail {key}": value for key, value in tail.items()}
    whole = json.dumps({**head, "items": items, **tail}, ensure_ascii=False, indent=2)
    assert b"".join(document(head, "items", items, lambda: tail)).decode() == f"{whole}\n"


@given(values)
def test_a_line_is_one_to_every_reader(value: object) -> None:
    line = compact(value).decode()
    assert len(line.splitlines()) == 1
    assert json.loads(line) == value


def test_what_json_and_utf_8_have_nothing_for_is_replaced() -> None:
    assert compact({"a": [float("nan"), float("inf"), "\ud800"]}) == b'{"a": [null, null, "?"]}'
