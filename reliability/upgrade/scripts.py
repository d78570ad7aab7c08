"""The scripts of the model: turns with calls of tools, some of which must not run twice."""

import random

from perdure.testing.script import Script, ScriptedAnswer, ScriptedToolCall

TURNS, ROUNDS = 3, 2
CALLS = TURNS * ROUNDS
VARIANTS = 8
CALL_SECONDS = (0.5, 8.0)


def make_scripts(seed: int) -> dict[str, Script]:
    names = [f"upgrade-{nth}" for nth in range(VARIANTS)]
    return {name: _make_script(name, random.Random(f"{seed} {name}")) for name in names}


def _make_script(name: str, chance: random.Random) -> Script:
    answers = []
    for turn in range(1, TURNS + 1):
        answers += [_make_call(chance) for _ in range(ROUNDS)]
        answers.append(ScriptedAnswer(content=f"Turn {turn} is done.", delay=chance.random()))
    return Script(name=name, answers=tuple(answers))


def _make_call(chance: random.Random) -> ScriptedAnswer:
    seconds = chance.uniform(*CALL_SECONDS)
    call = chance.choice(
        [
            ScriptedToolCall(name="look", arguments={"number": 1, "seconds": seconds}),
            ScriptedToolCall(name="charge", arguments={"amount": 1, "seconds": seconds}),
        ]
    )
    return ScriptedAnswer(tool_calls=(call,), delay=chance.random())
