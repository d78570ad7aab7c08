"""The scripts of the model: words that come slowly, with calls of tools and without."""

import random
from itertools import count

from perdure.testing.script import Script, ScriptedAnswer, ScriptedFailure
from reliability.chaos.load.scripts import charge_once, look_in_parallel

VARIANTS = 8
TURNS = 12
FAILURE_PROBABILITY = 0.1

ANSWER_SECONDS = (0.3, 2.0)
"""The least and the most seconds that an answer takes."""


def make_scripts(seed: int) -> dict[str, Script]:
    names = [f"following-{nth}" for nth in range(VARIANTS)]
    return {name: _make_script(name, random.Random(f"{seed} {name}")) for name in names}


def _make_script(name: str, chance: random.Random) -> Script:
    numbers = count(1)
    answers: list[ScriptedAnswer] = []
    for _ in range(TURNS):
        for make_calls in chance.sample([charge_once, look_in_parallel], 2):
            [calls] = make_calls(chance, numbers)
            answers.append(_make_answer(chance).model_copy(update={"tool_calls": calls}))
        answers.append(_make_answer(chance))
    return Script(name=name, answers=tuple(answers), repeat=True)


def _make_answer(chance: random.Random) -> ScriptedAnswer:
    """Make an answer of words; some are asked for again after a failure half-way."""
    words = [f"{chance.randrange(10**9)}ü" for _ in range(chance.randint(5, 60))]
    failure = ScriptedFailure(disconnect=True)
    fails = chance.random() < FAILURE_PROBABILITY
    return ScriptedAnswer(
        content=" ".join(words),
        chunk_delay=chance.uniform(*ANSWER_SECONDS) / len(words),
        failures=(failure,) if fails else (),
    )
