"""What the scripted model says: all kinds of tool calls, side by side and one by one."""

import random
from collections.abc import Callable, Iterator
from itertools import count

from models.script import Answer, Failure, Script, ToolCall

TURNS = 12
"""More than a conversation has: a message in the middle of a turn may make one of its own."""

VARIANTS = 16

FAILURES = (
    Failure(status=429, retry_after=0.2),
    Failure(status=500),
    Failure(disconnect=True),
    Failure(malformed=True),
)

UNSURE = 0.1
"""How many of the answers come only after a failure."""

Calls = tuple[ToolCall, ...]


def scripts(seed: int) -> dict[str, Script]:
    names = [f"chaos-{nth:02d}" for nth in range(VARIANTS)]
    return {name: _script(name, random.Random(f"{seed} {name}")) for name in names}


def _script(name: str, chance: random.Random) -> Script:
    numbers = count(1)
    answers = [one for _ in range(TURNS) for one in _turn(chance, numbers)]
    return Script(name=name, answers=tuple(answers), repeat=True)


def _turn(chance: random.Random, numbers: Iterator[int]) -> Iterator[Answer]:
    """Some answers with calls, and one that ends it."""
    kinds: list[Callable[[random.Random, Iterator[int]], list[Calls]]]
    kinds = [_charged, _charged_slowly, _looked, _deposited, _edited, _mixed]
    for kind in chance.sample(kinds, 4):
        for calls in kind(chance, numbers):
            yield _answer(chance, Answer(tool_calls=calls))
    yield _answer(chance, Answer(content=f"So much for that, after {next(numbers)} things."))


def _answer(chance: random.Random, plain: Answer) -> Answer:
    failures = (chance.choice(FAILURES),) if chance.random() < UNSURE else ()
    return plain.model_copy(update={"delay": chance.uniform(0.05, 0.4), "failures": failures})


def _charge(chance: random.Random, numbers: Iterator[int], longest: float) -> ToolCall:
    seconds = round(chance.uniform(0, longest), 2)
    return ToolCall(name="charge", arguments={"amount": next(numbers), "seconds": seconds})


def _look(chance: random.Random, numbers: Iterator[int]) -> ToolCall:
    seconds = round(chance.uniform(0.05, 1.0), 2)
    return ToolCall(name="look", arguments={"number": next(numbers), "seconds": seconds})


def _charged(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    return [(_charge(chance, numbers, 0.2),)]


def _charged_slowly(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    seconds = round(chance.uniform(1.0, 3.0), 2)
    return [(ToolCall(name="charge", arguments={"amount": next(numbers), "seconds": seconds}),)]


def _looked(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    return [tuple(_look(chance, numbers) for _ in range(chance.randint(2, 4)))]


def _deposited(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    """Side by side: each names an account of its own."""
    made = []
    for account in ("red", "green", "blue"):
        seconds = round(chance.uniform(0.1, 1.0), 2)
        arguments = {"account": account, "amount": next(numbers), "seconds": seconds}
        made.append(ToolCall(name="deposit", arguments=arguments))
    return [tuple(made)]


def _edited(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    """A file is written, and changed by the next answer."""
    number = next(numbers)
    path = f"notes/{number % 3}/{number}.txt"
    text = f"This is a draft, number {number}.\n" * chance.choice((1, 1, 50)) + "the end\n"
    change = {"old_str": "the end", "new_str": f"the end of {number}"}
    return [
        (_edit("create", path, file_text=text),),
        (_edit("str_replace", path, **change),),
    ]


def _edit(command: str, path: str, **more: str) -> ToolCall:
    return ToolCall(name="file_editor", arguments={"command": command, "path": path, **more})


def _mixed(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    number = next(numbers)
    edit = _edit("create", f"mixed/{number}.txt", file_text=f"number {number}\n")
    return [(_charge(chance, numbers, 0.5), edit, _look(chance, numbers))]
