"""JSON in pieces, and on a line."""

import json

from hypothesis import given
from hypothesis import strategies as st

from perdure.exports.json_text import compact_json, json_document

text = st.text(alphabet=st.sampled_from('a"\\\n\r\u2028\u2029\x85\x1e❤{}[],:'), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=12,
)
fields = st.dictionaries(text, values, max_size=3)


@given(fields, st.lists(values, max_size=3), fields)
def test_a_document_in_pieces_equals_one_written_at_once(
    head: dict[str, object], items: list[object], tail: dict[str, object]
) -> None:
    head = {f"head {key}": value for key, value in head.items()}
    tail = {f"tail {key}": value for key, value in tail.items()}
    whole = json.dumps({**head, "items": items, **tail}, ensure_ascii=False, indent=2)
    assert b"".join(json_document(head, "items", items, lambda: tail)).decode() == f"{whole}\n"


@given(values)
def test_a_line_is_one_line_for_every_reader(value: object) -> None:
    line = compact_json(value).decode()
    assert len(line.splitlines()) == 1
    assert json.loads(line) == value


def test_values_without_json_or_utf_8_are_replaced() -> None:
    assert (
        compact_json({"a": [float("nan"), float("inf"), "\ud800"]}) == b'{"a": [null, null, "?"]}'
    )
