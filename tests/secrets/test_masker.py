"""Values are masked in every form, wherever a text is cut, and nothing else is touched."""

import base64
import html
import json
import re
import shlex
import sys
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.secrets.masker import Masker, Patterns, mask_bytes

PEM = "-----BEGIN KEY-----\n{}\n-----END KEY-----".format(
    "\n".join(base64.b64encode(bytes(range(n, n + 48))).decode() for n in range(12))
)
VALUES = {
    "hunter22": "SHORT",
    "pass word'with\"all&<of>%them\\and $more`": "QUOTES",
    "ünïcode-♥-wört": "UNICODE",
    "a.*b+[c]|(d)?^{2}": "REGEX",
    "c2VjcmV0LWxvb2tz+/==": "BASE64",
    PEM: "PEM",
    "".join(f"{n:x}." for n in range(900)): "LONG",
    "hunter22-and-more": "LONGER",
}
PATTERNS = Patterns(VALUES)

FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": json.dumps,
    "json with unicode": lambda value: json.dumps(value, ensure_ascii=False),
    "json in json": lambda value: json.dumps(json.dumps(value)),
    "url": lambda value: quote(value, safe=""),
    "url in lower case": lambda value: re.sub(
        "%..", lambda match: match[0].lower(), quote(value, safe="")
    ),
    "form": quote_plus,
    "path": quote,
    "html": html.escape,
    "shell": shlex.quote,
    "repr": repr,
    "bytes": lambda value: repr(value.encode()),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "second of three": lambda value: base64.b64encode(b"u:" + value.encode() + b"x").decode(),
    "third of three": lambda value: base64.b64encode(b"user" + value.encode() + b"xy").decode(),
    "urlsafe": lambda value: base64.urlsafe_b64encode(value.encode()).decode().rstrip("="),
    "wrapped": lambda value: base64.encodebytes(b"." * 50 + value.encode()).decode(),
    "hex": lambda value: value.encode().hex(),
    "HEX": lambda value: value.encode().hex().upper(),
    "hex with colons": lambda value: value.encode().hex(":"),
    "dump": lambda value: value.encode().hex(" ", 2),
}

CHUNKS = st.lists(
    st.one_of(
        st.builds(
            lambda value, form: FORMS[form](value).encode(),
            st.sampled_from(sorted(VALUES)),
            st.sampled_from(sorted(FORMS)),
        ),
        st.binary(max_size=20),
        st.sampled_from([b" ", b"\n", b"hunter2", b"hunter22-and", b"aHVudGVy", b"pass word'"]),
    ),
    max_size=5,
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", VALUES, ids=VALUES.values())
def test_a_value_is_found_in_every_form(value: str, form: str) -> None:
    encoding = FORMS[form](value)
    output = mask_bytes(f"before {encoding} after".encode(), PATTERNS).decode()
    assert f"<secret:{VALUES[value]}>" in output
    assert output.startswith("before ")
    assert output.endswith(" after")
    assert encoding not in output
    rest = output.replace(f"<secret:{VALUES[value]}>", "")
    rest = re.sub(r"[\s:]+", "", rest)
    assert len(rest) < len("beforeafter") + 80, "no more than quotes and armour"


@pytest.mark.long
@given(parts=CHUNKS, data=st.data())
def test_however_a_text_is_cut_the_same_comes_out(parts: list[bytes], data: st.DataObject) -> None:
    text = b"".join(parts)
    masker, out, at = Masker(lambda: PATTERNS), b"", 0
    while at < len(text):
        size = data.draw(st.integers(1, 40))
        out += masker.feed(text[at : at + size])
        at += size
    assert out + masker.flush() == mask_bytes(text, PATTERNS)


@given(parts=CHUNKS)
def test_no_value_survives(parts: list[bytes]) -> None:
    output = mask_bytes(b"".join(parts), PATTERNS)
    for value in VALUES:
        for form in FORMS.values():
            encoding = form(value).strip("\"'").encode()
            assert encoding not in output


@given(text=st.text(max_size=300))
def test_a_text_without_values_stays_as_it_is(text: str) -> None:
    assert mask_bytes(text.encode(), PATTERNS) == text.encode()


@given(data=st.binary(max_size=2000))
def test_the_base64_of_a_binary_stays_as_it_is(data: bytes) -> None:
    packed = base64.b64encode(data)
    assert mask_bytes(packed, PATTERNS) == packed


def test_only_what_may_be_the_beginning_of_a_value_is_held_back() -> None:
    masker = Masker(lambda: PATTERNS)
    assert masker.feed(b"log in with !") == b"log in with !"
    assert masker.feed(b"hunter2") == b""
    assert masker.feed(b"3!") == b"hunter23!"


def test_at_most_so_much_is_held_back_as_a_form_may_be_spread_over() -> None:
    masker = Masker(lambda: PATTERNS)
    text = b"aHVudGVy" + b" " * 400
    assert len(masker.feed(text)) > len(text) - 256


def test_a_reader_who_does_not_wait_sees_the_beginning_and_never_the_rest() -> None:
    masker = Masker(lambda: PATTERNS)
    assert masker.feed(b"hunter22-and") + masker.flush() == b"<secret:SHORT>-and"
    assert masker.feed(b"-more, then") + masker.flush() == b"<secret:LONGER>, then"


def test_part_of_a_long_value_is_masked_too() -> None:
    output = mask_bytes(f"the start: {PEM[:300]}".encode(), PATTERNS).decode()
    assert "<secret:PEM>" in output
    assert PEM[16:80] not in output
    assert PEM[100:120] not in output


def test_what_is_public_of_a_key_is_shown() -> None:
    assert mask_bytes(b"-----BEGIN KEY-----\n", PATTERNS) == b"-----BEGIN KEY-----\n"


def test_the_line_of_a_value_is_masked_behind_the_name_of_a_file() -> None:
    line = PEM.splitlines()[3]
    assert mask_bytes(f"id_rsa:4:{line}".encode(), PATTERNS) == b"id_rsa:4:<secret:PEM>"


@pytest.mark.parametrize("unit", [b"hunter2", b"a", b"aHVudGVyMj", b"3.3.", b"\x00", b"hunter22"])
def test_time_grows_with_the_text_and_no_faster(unit: bytes) -> None:
    def calls(size: int) -> int:
        made = [0]
        sys.setprofile(lambda *_: made.__setitem__(0, made[0] + 1))
        try:
            mask_bytes((unit * size)[:size], PATTERNS)
        finally:
            sys.setprofile(None)
        return made[0]

    assert calls(40_000) < 4.5 * calls(10_000) + 1_000
