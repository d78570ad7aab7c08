"""The scripts of the model: all kinds of tool calls, in parallel and one by one."""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TypeAlias

from perdure.testing.script import Script, ScriptedAnswer, ScriptedFailure, ScriptedToolCall

TURNS = 12
"""More than a conversation has: a message in the middle of a turn may make one of its own."""

VARIANTS = 16

FAILURES = (
    ScriptedFailure(status=429, retry_after=0.2),
    ScriptedFailure(status=500),
    ScriptedFailure(disconnect=True),
    ScriptedFailure(malformed=True),
)

FAILURE_PROBABILITY = 0.1
"""How many of the answers come only after a failure."""

Calls: TypeAlias = tuple[ScriptedToolCall, ...]
CallKind: TypeAlias = Callable[[random.Random, Iterator[int]], list[Calls]]
"""Makes the calls of some answers, one after the other; the numbers are new each time."""


def scripts(seed: int) -> dict[str, Script]:
    kinds = [
        charge_once,
        charge_slowly,
        look_in_parallel,
        deposit_in_parallel,
        create_and_edit,
        mix_calls,
    ]
    return make_scripts("chaos", seed, kinds)


def make_scripts(
    prefix: str, seed: int, kinds: Sequence[CallKind], kinds_per_turn: int = 4
) -> dict[str, Script]:
    """Make variants, by name, whose turns have some of the kinds of calls each."""

    def make(name: str) -> Script:
        chance = random.Random(f"{seed} {name}")
        return _script(name, chance, lambda: chance.sample(kinds, kinds_per_turn))

    return {name: make(name) for name in (f"{prefix}-{nth:02d}" for nth in range(VARIANTS))}


def _script(
    name: str, chance: random.Random, choose_kinds: Callable[[], Sequence[CallKind]]
) -> Script:
    numbers = count(1)
    answers = [item for _ in range(TURNS) for item in _turn(chance, numbers, choose_kinds())]
    return Script(name=name, answers=tuple(answers), repeat=True)


def _turn(
    chance: random.Random, numbers: Iterator[int], kinds: Sequence[CallKind]
) -> Iterator[ScriptedAnswer]:
    """Some answers with calls, and one that ends it."""
    for kind in kinds:
        for calls in kind(chance, numbers):
            yield _answer(chance, ScriptedAnswer(tool_calls=calls))
    yield _answer(
        chance, ScriptedAnswer(content=f"So much for that, after {next(numbers)} things.")
    )


def _answer(chance: random.Random, plain: ScriptedAnswer) -> ScriptedAnswer:
    failures = (chance.choice(FAILURES),) if chance.random() < FAILURE_PROBABILITY else ()
    return plain.model_copy(update={"delay": chance.uniform(0.05, 0.4), "failures": failures})


def make_charge(chance: random.Random, numbers: Iterator[int], longest: float) -> ScriptedToolCall:
    seconds = round(chance.uniform(0, longest), 2)
    return ScriptedToolCall(name="charge", arguments={"amount": next(numbers), "seconds": seconds})


def make_look(chance: random.Random, numbers: Iterator[int]) -> ScriptedToolCall:
    seconds = round(chance.uniform(0.05, 1.0), 2)
    return ScriptedToolCall(name="look", arguments={"number": next(numbers), "seconds": seconds})


def charge_once(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    return [(make_charge(chance, numbers, 0.2),)]


def charge_slowly(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    seconds = round(chance.uniform(1.0, 3.0), 2)
    return [
        (ScriptedToolCall(name="charge", arguments={"amount": next(numbers), "seconds": seconds}),)
    ]


def look_in_parallel(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    return [tuple(make_look(chance, numbers) for _ in range(chance.randint(2, 4)))]


def deposit_in_parallel(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    """Side by side: each names an account of its own."""
    made = []
    for account in ("red", "green", "blue"):
        seconds = round(chance.uniform(0.1, 1.0), 2)
        arguments = {"account": account, "amount": next(numbers), "seconds": seconds}
        made.append(ScriptedToolCall(name="deposit", arguments=arguments))
    return [tuple(made)]


def create_and_edit(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    """A file is written, and changed by the next answer."""
    number = next(numbers)
    path = f"notes/{number % 3}/{number}.txt"
    text = f"This is a draft, number {number}.\n" * chance.choice((1, 1, 50)) + "the end\n"
    change = {"old_str": "the end", "new_str": f"the end of {number}"}
    return [
        (_edit("create", path, file_text=text),),
        (_edit("str_replace", path, **change),),
    ]


def _edit(command: str, path: str, **more: str) -> ScriptedToolCall:
    return ScriptedToolCall(
        name="file_editor", arguments={"command": command, "path": path, **more}
    )


def mix_calls(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    number = next(numbers)
    edit = _edit("create", f"mixed/{number}.txt", file_text=f"number {number}\n")
    return [(make_charge(chance, numbers, 0.5), edit, make_look(chance, numbers))]
