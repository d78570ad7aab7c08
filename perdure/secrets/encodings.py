"""The encoded forms in which programs print a value, and in which it is masked.

Compressed, encrypted, reversed and UTF-16 forms are not among them, nor are dumps with columns
such as those of `xxd`.
"""

import base64
import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

MAX_PIECE_BYTES = 64
"""Length limit of a pattern; longer forms are searched in pieces, to hold back little text."""

MIN_LINE_BYTES = 16
"""Minimum length of a line that is a secret by itself; shorter ones occur by chance."""

_LINES = re.compile(r"\r\n|\r|\n|\\n")
_ARMOUR = re.compile(rb"-----(BEGIN|END) ")
_ESCAPE = re.compile(rb"%[0-9A-F]{2}|\\u[0-9a-f]{4}")
_QUOTED_BY_BASH = re.compile(r"([^A-Za-z0-9_@%+:./\n-])")


def text_forms(value: str) -> set[bytes]:
    """Return the plain, quoted and escaped forms of a value, and its long lines."""
    forms = {form.encode(errors="surrogateescape") for form in _escaped_forms(value)}
    forms |= {_ESCAPE.sub(_swap_escape_case, form) for form in forms}
    lines = [line.strip().encode() for line in _LINES.split(value)]
    if len(lines) > 1:
        long_lines = (line for line in lines if len(line) >= MIN_LINE_BYTES)
        forms.update(line for line in long_lines if not _ARMOUR.match(line))
    return forms


def packed_forms(value: str) -> set[bytes]:
    """Return the forms that programs break into lines or groups: base64 and hexadecimal."""
    raw = value.encode()
    forms = {raw.hex().encode(), raw.hex().upper().encode()}
    for offset in range(3):
        packed = base64.b64encode(bytes(offset) + raw)
        # Only the digits that no neighbour of the value changes.
        certain = packed[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]
        forms |= {certain, certain.replace(b"+", b"-").replace(b"/", b"_")}
    return forms


def split_form(form: bytes) -> list[bytes]:
    """Cut a form into equal parts, so that a part of a long one is found too."""
    count = -(-len(form) // MAX_PIECE_BYTES)
    return [form[len(form) * n // count : len(form) * (n + 1) // count] for n in range(count)]


def _escaped_forms(value: str) -> Iterator[str]:
    yield value
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield once.replace("/", r"\/")
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    for safe in ("", "/", "!'()*", ";,/?:@&=+$!'()*#"):
        yield quote(value, safe)
        yield quote_plus(value, safe)
    yield html.escape(value)
    yield html.escape(value, quote=False)
    yield html.escape(value).replace("&#x27;", "&#39;")
    yield html.escape(value).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    yield from _shell_quoted_forms(value)
    yield repr(value)[1:-1]
    yield repr(value.encode())[2:-1]


def _shell_quoted_forms(value: str) -> Iterator[str]:
    yield value.replace("'", "'\"'\"'")
    yield value.replace("'", r"'\''")
    yield re.sub(r'([\\"$`])', r"\\\1", value)
    yield _QUOTED_BY_BASH.sub(r"\\\1", value)
    escapes = {"\\": r"\\", "'": r"\'", "\n": r"\n", "\t": r"\t", "\r": r"\r"}
    yield "".join(escapes.get(character, character) for character in value)


def _swap_escape_case(escape: re.Match[bytes]) -> bytes:
    return escape[0].lower() if escape[0].startswith(b"%") else b"\\u" + escape[0][2:].upper()
