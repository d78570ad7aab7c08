"""The scripts of agents that start with a clone, secrets and servers, and that note things."""

import random
from collections.abc import Iterator

from perdure.testing.script import Script, ScriptedToolCall
from reliability.chaos.load.scripts import (
    Calls,
    charge_once,
    create_and_edit,
    make_scripts,
)

PRINTED_SECRET = "SECRET_2"
"""The secret that a command prints, so that it has to be masked in the log."""

KINDS_PER_TURN = 3
"""Of the kinds of calls, most of which take two answers: a turn is as long as one of the others."""

MAX_FOUND = 20
"""The most memories that a recall returns."""


def equipped_scripts(seed: int) -> dict[str, Script]:
    kinds = [
        charge_once,
        create_and_edit,
        read_clone,
        ask_servers,
        set_and_get,
        sign_books,
        remember_and_recall,
    ]
    return make_scripts("equipped", seed, kinds, KINDS_PER_TURN)


def read_clone(_: random.Random, numbers: Iterator[int]) -> list[Calls]:
    command = f'echo {next(numbers)}; cat project/README; echo "${PRINTED_SECRET} ${{#SECRET_1}}"'
    return [(ScriptedToolCall(name="terminal", arguments={"command": command}),)]


def ask_servers(_: random.Random, numbers: Iterator[int]) -> list[Calls]:
    number = next(numbers)
    names = ("one__add", "two__add")
    return [tuple(ScriptedToolCall(name=name, arguments={"a": number}) for name in names)]


def set_and_get(_: random.Random, numbers: Iterator[int]) -> list[Calls]:
    number = next(numbers)
    key = f"step-{number % 3}"
    change = {"command": "set", "key": key, "value": {"number": number}}
    return [
        (ScriptedToolCall(name="state", arguments=change),),
        (ScriptedToolCall(name="state", arguments={"command": "get", "key": key}),),
    ]


def sign_books(chance: random.Random, _: Iterator[int]) -> list[Calls]:
    """Books of the conversation, of the user and of all users are signed, by both tools."""

    def make(name: str, scope: str) -> ScriptedToolCall:
        seconds = round(chance.uniform(0, 1.5), 2)
        return ScriptedToolCall(name=name, arguments={"scope": scope, "seconds": seconds})

    once, scope = chance.choice(("own", "user", "app")), chance.choice(("user", "app"))
    return [(make("sign", "own"),), (make("sign_once", once), make("sign", scope))]


def remember_and_recall(chance: random.Random, numbers: Iterator[int]) -> list[Calls]:
    """A memory with a word that no other has is put, and found by the next answer."""
    word = f"q{chance.randrange(10**9):09d}z"
    text = f"The word of thing {next(numbers)} is {word}."
    search = {"query": word, "limit": MAX_FOUND}
    return [
        (ScriptedToolCall(name="remember", arguments={"text": text}),),
        (ScriptedToolCall(name="recall", arguments=search),),
    ]
