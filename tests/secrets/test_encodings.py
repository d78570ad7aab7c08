"""The forms in which a secret may appear in a text."""

from perdure.secrets.encodings import text_forms

LINE = b"0123456789abcdef"


def test_lines_of_sixteen_bytes_and_more_of_a_value_are_forms_of_it() -> None:
    value = "\n".join(["a short line", LINE.decode(), LINE.decode()[1:], LINE.decode() + "g"])
    forms = text_forms(value)
    assert {LINE, LINE + b"g"} <= forms
    assert not {LINE[1:], b"a short line"} & forms


def test_a_value_of_one_line_has_no_lines_and_a_key_is_more_than_its_armour() -> None:
    assert LINE + b"g" not in text_forms(f"x {LINE.decode()}g")
    key = f"-----BEGIN PRIVATE KEY-----\n{LINE.decode()}\n-----END PRIVATE KEY-----"
    assert LINE in text_forms(key)
    assert b"-----BEGIN PRIVATE KEY-----" not in text_forms(key)
