"""A little of what `python -m tests.fuzz` does, and again whatever that has ever found."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.given import handle
from tests.fuzz.mutation import mutated
from tests.fuzz.performed import mask
from tests.fuzz.stored import build_keys
from tests.fuzz.targets import TARGETS
from tests.fuzz.watch import BASE, Growing, Hanging, Target, judged, timed, weighed

FOUND = sorted(Path(__file__).with_name("found").glob("*-*"))
BY_NAME = {target.name: target for target in TARGETS}
LONGEST = 2_000

LETTERS = "aA0._@-/\\ \n\0\x1e\x7fäß\u2028\U0001f4a5\udc80"
FIELDS = (
    *("text", "images", "message_id", "sender", "accept", "calls", "through", "reason", "title"),
    *("tags", "state", "limits", "model", "fallbacks", "condenser", "stuck", "confirmation"),
    *("analyzers", "parallel", "secrets", "kind", "user:a", "app:"),
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(LETTERS, max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_what_was_found_once_stands(path: Path) -> None:
    judged(BY_NAME[path.name.partition("-")[0]], path.read_bytes())


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_all_others_are_made_of_stands(target: Target) -> None:
    for seed in target.seeds:
        judged(target, seed)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_is_made_of_it_stands(target: Target) -> None:
    random = Random(target.name)
    seeds = [seed[:LONGEST] for seed in target.seeds]
    for _ in range(6):
        judged(target, mutated(random, seeds)[:LONGEST])


@settings(derandomize=True, max_examples=25)
@given(lines=st.lists(st.text(LETTERS, max_size=40), max_size=4))
def test_no_id_leaves_its_prefix(lines: list[str]) -> None:
    text = "\n".join(line.replace("\n", "") for line in lines)
    judged(Target("keys", build_keys, (), (ValueError,)), text.encode(errors="surrogateescape"))


@settings(derandomize=True, max_examples=25)
@given(
    values=st.lists(st.text("ab1+/=é", min_size=8, max_size=24), max_size=3),
    text=st.lists(st.sampled_from(("a", "b", "1", " ", "61", "\\", "0")), max_size=40),
)
def test_no_value_passes_the_masker(values: list[str], text: list[str]) -> None:
    mask("\n".join(values).encode() + b"\n\n" + "".join([*text, *values, *text]).encode())


@settings(derandomize=True, max_examples=25)
@given(sent=JSON)
def test_no_handler_raises_what_is_no_answer(sent: Any) -> None:
    handle(json.dumps(sent).encode())


def test_an_input_that_hangs_is_found() -> None:
    def hang(_: bytes) -> None:
        while True:
            pass

    with pytest.raises(Hanging), timed(0.05):
        judged(Target("hangs", hang, ()), b"")


def test_an_input_that_grows_is_found() -> None:
    def grow(_: bytes) -> None:
        bytearray(2 * BASE)

    with pytest.raises(Growing):
        weighed(Target("grows", grow, ()), b"")


def test_an_error_that_is_no_answer_is_found() -> None:
    target = Target("fails", lambda data: json.loads(data), (), (UnicodeDecodeError,))
    with pytest.raises(json.JSONDecodeError):
        judged(target, b"{")
