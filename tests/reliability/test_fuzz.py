"""A short run of `python -m reliability.fuzz`, and every input that it has ever found."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliability.fuzz.input_targets import handle
from reliability.fuzz.mutation import mutate
from reliability.fuzz.store_targets import build_keys
from reliability.fuzz.targets import TARGETS
from reliability.fuzz.tool_targets import mask
from reliability.fuzz.watch import (
    BASE_MEMORY_BYTES,
    Growing,
    Hanging,
    Target,
    run_target,
    run_with_memory_check,
    time_limit,
)

FOUND = sorted((Path(__file__).parents[2] / "reliability" / "fuzz" / "found").glob("*-*"))
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
def test_inputs_found_by_earlier_runs_pass(path: Path) -> None:
    run_target(BY_NAME[path.name.partition("-")[0]], path.read_bytes())


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_seeds_of_a_target_pass(target: Target) -> None:
    for seed in target.seeds:
        run_target(target, seed)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_mutations_of_the_seeds_pass(target: Target) -> None:
    random = Random(target.name)
    seeds = [seed[:LONGEST] for seed in target.seeds]
    for _ in range(6):
        run_target(target, mutate(random, seeds)[:LONGEST])


@settings(derandomize=True, max_examples=25)
@given(lines=st.lists(st.text(LETTERS, max_size=40), max_size=4))
def test_no_id_leaves_its_prefix(lines: list[str]) -> None:
    text = "\n".join(line.replace("\n", "") for line in lines)
    run_target(Target("keys", build_keys, (), (ValueError,)), text.encode(errors="surrogateescape"))


@settings(derandomize=True, max_examples=25)
@given(
    values=st.lists(st.text("ab1+/=é", min_size=8, max_size=24), max_size=3),
    text=st.lists(st.sampled_from(("a", "b", "1", " ", "61", "\\", "0")), max_size=40),
)
def test_no_value_passes_the_masker(values: list[str], text: list[str]) -> None:
    mask("\n".join(values).encode() + b"\n\n" + "".join([*text, *values, *text]).encode())


@settings(derandomize=True, max_examples=25)
@given(sent=JSON)
def test_handlers_raise_only_errors_for_the_caller(sent: Any) -> None:
    handle(json.dumps(sent).encode())


def test_an_input_that_hangs_is_found() -> None:
    def hang(_: bytes) -> None:
        while True:
            pass

    with pytest.raises(Hanging), time_limit(0.05):
        run_target(Target("hangs", hang, ()), b"")


def test_an_input_that_grows_is_found() -> None:
    def grow(_: bytes) -> None:
        bytearray(2 * BASE_MEMORY_BYTES)

    with pytest.raises(Growing):
        run_with_memory_check(Target("grows", grow, ()), b"")


def test_an_unexpected_error_is_found() -> None:
    target = Target("fails", lambda data: json.loads(data), (), (UnicodeDecodeError,))
    with pytest.raises(json.JSONDecodeError):
        run_target(target, b"{")
