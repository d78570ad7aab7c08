"""The forms in which programs print a value, for each of which its mask has to be found.

Not among them: what is compressed, encrypted, reversed or in UTF-16, and dumps with columns of
their own, such as those of `xxd`.
"""

import base64
import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

LONGEST_PIECE = 64
"""Bytes of a pattern: longer forms are looked for in pieces, so that little is held back."""

LINE = 16
"""Bytes of a line that is a secret by itself; shorter ones may be anybody's."""

_LINES = re.compile(r"\r\n|\r|\n|\\n")
_ARMOUR = re.compile(r"-----(BEGIN|END) ")
_ESCAPE = re.compile(rb"%[0-9A-F]{2}|\\u[0-9a-f]{4}")
_QUOTED_BY_BASH = re.compile(r"([^A-Za-z0-9_@%+:./\n-])")


def text_forms(value: str) -> set[bytes]:
    """Those that are found as they stand: plain, quoted and escaped; of a long value its lines."""
    forms = {form.encode(errors="surrogateescape") for form in _escaped(value)}
    forms |= {_ESCAPE.sub(_in_other_case, form) for form in forms}
    lines = [line.strip().encode() for line in _LINES.split(value)]
    if len(lines) > 1:
        forms.update(one for one in lines if len(one) >= LINE and not _ARMOUR.match(one.decode()))
    return forms


def packed_forms(value: str) -> set[bytes]:
    """Those that programs break into lines or groups: base64 and hexadecimal."""
    raw = value.encode()
    forms = {raw.hex().encode(), raw.hex().upper().encode()}
    for before in range(3):
        packed = base64.b64encode(bytes(before) + raw)
        # Only what no neighbour of the value has a say in.
        certain = packed[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        forms |= {certain, certain.replace(b"+", b"-").replace(b"/", b"_")}
    return forms


def pieces(form: bytes) -> list[bytes]:
    """A form cut into equal parts, so that of a long one also a part is found."""
    count = -(-len(form) // LONGEST_PIECE)
    return [form[len(form) * n // count : len(form) * (n + 1) // count] for n in range(count)]


def _escaped(value: str) -> Iterator[str]:
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
    yield from _quoted_by_shells(value)
    yield repr(value)[1:-1]
    yield repr(value.encode())[2:-1]


def _quoted_by_shells(value: str) -> Iterator[str]:
    yield value.replace("'", "'\"'\"'")
    yield value.replace("'", r"'\''")
    yield re.sub(r'([\\"$`])', r"\\\1", value)
    yield _QUOTED_BY_BASH.sub(r"\\\1", value)
    escapes = {"\\": r"\\", "'": r"\'", "\n": r"\n", "\t": r"\t", "\r": r"\r"}
    yield "".join(escapes.get(one, one) for one in value)


def _in_other_case(escape: re.Match[bytes]) -> bytes:
    return escape[0].lower() if escape[0].startswith(b"%") else b"\\u" + escape[0][2:].upper()
