"""Mutations of inputs: moved bytes, and JSON with other values."""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias

MAX_INPUT_BYTES = 128 * 1024
"""Bytes of an input that is made."""

WORDS = (
    *(
        b"\x00",
        b"\xff",
        b"\n",
        b"\r\n",
        b" ",
        b"\x1e",
        b"\\",
        b'"',
        b"'",
        b"/",
        b"..",
        b"~",
        b"%00",
    ),
    *(b"{", b"}", b"[", b"]", b"(", b"$(", b"`", b"<", b"---\n", b"@@", b"*", b"**/", b"{a,b}"),
    *(b"null", b"true", b"NaN", b"Infinity", b"-1", b"0", b"1e999", b"1e-320", b"999999999999"),
    *(rb"\ud800", rb"\u0000", b"\xed\xa0\x80", "\u2028\U0001f4a5é".encode(), b"\xef\xbb\xbf"),
    *(
        b"$ref",
        b"<<",
        b"&a ",
        b"*a",
        b"<function=",
        b"<parameter=",
        b"data:",
        b"checksum",
        b"9" * 5000,
    ),
)

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**6, 10**30, 10**400, float("nan"), float("inf"), 1e308),
    *(
        "",
        "\0",
        "\ud800",
        "..",
        "x" * 200,
        "é💥",
        "2026-03-01T09:00:00.000000",
        [],
        {},
        [[]],
        {"": {}},
    ),
    *([None], {"$ref": "#"}, {"a": 1}, "9" * 50),
)

DEPTHS = (3, 30, 90, 190, 260, 800, 20_000)

Corpus: TypeAlias = Sequence[bytes]


def mutate(random: Random, corpus: Corpus) -> bytes:
    """An input like one of the corpus; the same for the same random numbers."""
    made = random.choice(corpus)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        made = random.choice(MUTATIONS)(random, made, corpus)[:MAX_INPUT_BYTES]
    return made


def flip_byte(random: Random, text: bytes, _: Corpus) -> bytes:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.randbytes(1) + text[at + 1 :]


def remove_part(random: Random, text: bytes, _: Corpus) -> bytes:
    start, end = _span(random, text)
    return text[:start] + text[end:]


def repeat_part(random: Random, text: bytes, _: Corpus) -> bytes:
    """A part of it many times: what takes the square of its time shows."""
    start, end = _span(random, text)
    times = random.choice((2, 2, 2, 3, 3, 20, 20, 1000, 20_000))
    return (
        text[:start]
        + text[start:end] * min(times, MAX_INPUT_BYTES // (end - start + 1))
        + text[end:]
    )


def insert_word(random: Random, text: bytes, _: Corpus) -> bytes:
    start, end = _span(random, text)
    end = random.choice((start, end))
    return text[:start] + random.choice(WORDS) + text[end:]


def splice(random: Random, text: bytes, corpus: Corpus) -> bytes:
    other = random.choice(corpus)
    return text[: random.randrange(len(text) + 1)] + other[random.randrange(len(other) + 1) :]


def nest(random: Random, text: bytes, _: Corpus) -> bytes:
    start, end = _span(random, text)
    opened, closed = random.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"$(", b")")))
    depth = min(random.choice(DEPTHS), MAX_INPUT_BYTES // len(opened))
    return text[:start] + opened * depth + (text[start:end] or b"1") + closed * depth + text[end:]


def replace_json_value(random: Random, text: bytes, _: Corpus) -> bytes:
    """JSON with another value in one place; what is no JSON stays as it is."""
    try:
        document = json.loads(text)
        place, key = random.choice(json_places([document]))
        match random.randrange(4):
            case 0 if isinstance(place, dict):
                del place[key]
            case 1:
                place[key] = [place[key]] * random.choice((2, 50))
            case 2:
                place[key] = random.choice(json_places([document]))[0]
                document = json.loads(json.dumps(document))
            case _:
                place[key] = random.choice(VALUES)
        return json.dumps(document).encode()
    except (ValueError, RecursionError):
        return text


def json_places(document: Any) -> list[tuple[Any, Any]]:
    """Every place in it: a list or an object, and where in that."""
    places, waiting = [], [document]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        places += [(node, key) for key in keys]
        waiting += [node[key] for key in keys if isinstance(node[key], dict | list)]
    return places


def _span(random: Random, text: bytes) -> tuple[int, int]:
    start = random.randrange(len(text) + 1)
    return start, min(len(text), start + random.choice((1, 2, 8, 64, 1024)))


MUTATIONS: tuple[Callable[[Random, bytes, Corpus], bytes], ...] = (
    *(flip_byte, remove_part, repeat_part, insert_word, insert_word, splice, nest),
    *(replace_json_value, replace_json_value, replace_json_value),
)
