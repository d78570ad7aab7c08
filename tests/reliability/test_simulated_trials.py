"""Some trials of `python -m reliability.simulation --kind`; their laws find planted bugs."""

from collections import Counter

import pytest

from reliability.simulation.store import CHECKED_READS, LISTS, WRITES
from reliability.simulation.trials.broken.mistakes import BROKEN, Mistake
from reliability.simulation.trials.kinds import CONVERSATION, TRIALS, kinds_of, make_playable

ENOUGH = 300
"""Schedules in which each mistake must have shown."""


LIKELY_SEEDS = {
    "lists-ShowsWhatRestsAtWork": (510, 817, 916, 1350),
    "memory-DeletesNewerRows": (675, 820),
    "memory-KeepsLateTexts": (558,),
    "memory-ReplacesAnyTable": (2228,),
    "memory-SettlesUnderRebuilds": (1080,),
}
"""Seeds that showed a rare mistake: they are tried first, and any others after them."""


def finds(mistake: Mistake) -> bool:
    """Tell whether a schedule breaks a law, with this part in the place of the right one."""
    for seed in (*LIKELY_SEEDS.get(str(mistake), ()), *range(ENOUGH)):
        try:
            TRIALS[mistake.kind](seed, mistake.part).run()
        except Exception:  # a fold that meets a hole, an assertion: all of it is found
            return True
    return False


@pytest.mark.long
@pytest.mark.parametrize("kind", TRIALS)
def test_no_trial_breaks_a_law_and_processes_die_in_some(kind: str) -> None:
    happened: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for seed in range(15):
        trial = make_playable(kind, seed)
        trial.run()
        happened += trial.happened
        faults += trial.bucket.faults
    assert happened["crashed"]
    assert happened["given up"]
    assert len(set(faults) & {*WRITES, *CHECKED_READS, *LISTS}) > 10


@pytest.mark.long
@pytest.mark.parametrize("kind", TRIALS)
def test_no_other_trial_breaks_a_law(kind: str) -> None:
    for seed in range(15, 100):
        make_playable(kind, seed).run()


@pytest.mark.long
@pytest.mark.parametrize("mistake", BROKEN, ids=str)
def test_a_planted_bug_beside_the_log_is_found(mistake: Mistake) -> None:
    assert finds(mistake), mistake.part.__doc__


@pytest.mark.parametrize("kind", TRIALS)
def test_a_seed_reproduces_the_trace_of_a_trial(kind: str) -> None:
    trials = [make_playable(kind, 3, telling=True) for _ in range(2)]
    for trial in trials:
        trial.run()
    assert trials[0].loop.trace
    assert trials[0].loop.trace == trials[1].loop.trace


def test_every_seed_plays_a_conversation_and_the_trials_take_turns() -> None:
    played = Counter(kind for seed in range(3 * 5 * len(TRIALS)) for kind in kinds_of(seed))
    assert played == {CONVERSATION: 3 * 5 * len(TRIALS)} | dict.fromkeys(TRIALS, 5)
