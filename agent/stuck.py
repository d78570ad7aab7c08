"""Whether the agent goes in circles: told from fingerprints alone, newest first."""

from collections.abc import Collection, Sequence
from itertools import takewhile

from agent.spec import StuckThresholds
from events.base import Frozen
from events.digest import Digest

OBSERVATIONS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")

KEPT = ("MessageEvent", "ActionEvent", *OBSERVATIONS, "PauseEvent", "InterruptEvent")
"""What is judged by, and what ends a monologue; the rest is bookkeeping."""


class Trace(Frozen):
    """What is remembered of an event: about 150 bytes of JSON."""

    seq: int
    kind: str
    source: str
    fingerprint: str
    tool_name: str | None = None
    is_error: bool = False


class Evidence(Frozen):
    """What a `StuckEvent` says: the events from `first_seq` to `last_seq` show `pattern`."""

    pattern: str
    first_seq: int
    last_seq: int
    count: int


def remember(
    recent: tuple[Trace, ...], fact: Digest, thresholds: StuckThresholds
) -> tuple[Trace, ...]:
    """The newest `thresholds.window` events that count, with this one.

    A person's message starts over; what the system itself tells the agent does not.
    """
    if fact.kind == "MessageEvent" and fact.source == "user":
        return ()
    if fact.kind not in KEPT:
        return recent
    known = (*recent, _trace(fact))
    return known[max(0, len(known) - thresholds.window) :]


def _trace(fact: Digest) -> Trace:
    return Trace(
        seq=fact.seq,
        kind=fact.kind,
        source=fact.source,
        fingerprint=fact.fingerprint,
        tool_name=fact.tool_name,
        is_error=bool(fact.is_error),
    )


def verdict(
    recent: Sequence[Trace], thresholds: StuckThresholds, waits: Collection[str] = ()
) -> Evidence | None:
    """What shows that the agent is stuck, if anything does.

    Calling a tool of `waits` again and again with the same result is how an agent waits; a call of
    it that could not be made at all is an error like any other.
    """
    return (
        _repeating(recent, thresholds.action_observation, waits)
        or _failing(recent, thresholds.action_error, waits)
        or _monologue(recent, thresholds.monologue)
        or _alternating(recent, thresholds, waits)
    )


def nudge(
    recent: Sequence[Trace], thresholds: StuckThresholds, waits: Collection[str] = ()
) -> str | None:
    """What to tell an agent, once, whose same action has failed `action_error` times.

    It is told by a message from the environment: where one stands behind the last failure, it was.
    """
    failures = _failures(recent, waits)
    if not failures or len(failures) != 2 * thresholds.action_error:
        return None
    last = failures[1].seq
    if any(trace.seq > last and _is_told(trace) for trace in recent):
        return None
    return (
        f"`{failures[0].tool_name}` was called {thresholds.action_error} times in a row with the "
        "same arguments and failed every time; it will not work the next time either. Read the "
        "error, then change the arguments or try another way. The same failure once more ends "
        "your turn."
    )


def _repeating(recent: Sequence[Trace], times: int, waits: Collection[str]) -> Evidence | None:
    shown = _newest(recent, times, OBSERVATIONS)
    if shown is None or any(trace.tool_name in waits for trace in shown):
        return None
    actions, observations = shown[:times], shown[times:]
    if _same(actions) and _same(observations):
        return _evidence("action_observation", shown, times)
    return None


def _failing(recent: Sequence[Trace], times: int, waits: Collection[str]) -> Evidence | None:
    failures = _failures(recent, waits)
    count = len(failures) // 2
    return _evidence("action_error", failures, count) if 0 < times < count else None


def _monologue(recent: Sequence[Trace], times: int) -> Evidence | None:
    newest = takewhile(lambda trace: trace.kind == "MessageEvent", reversed(recent))
    said = [trace for trace in newest if trace.source == "agent"]
    return _evidence("monologue", said, len(said)) if 0 < times <= len(said) else None


def _alternating(
    recent: Sequence[Trace], thresholds: StuckThresholds, waits: Collection[str]
) -> Evidence | None:
    """Two pairs in turn; a person who says no in between is no part of the circle."""
    # Of fewer than three nothing has come back yet.
    times = max(thresholds.alternating, 3) if thresholds.alternating > 0 else 0
    shown = _newest(recent, times, OBSERVATIONS[:2])
    if shown is None or any(trace.tool_name in waits for trace in shown):
        return None
    each = (shown[:times], shown[times:])
    if all(map(_same, each)) and not 0 < thresholds.action_observation <= times:
        return None  # one pair, and it may come that often
    if all(_same(row[start::2]) for row in each for start in (0, 1)):
        return _evidence("alternating", shown, times)
    return None


def _newest(recent: Sequence[Trace], times: int, observations: Sequence[str]) -> list[Trace] | None:
    """The newest actions, then the newest observations, `times` of each; or there are fewer.

    Each are gathered on their own, as the results of a batch stand behind all of its calls.
    """
    acted = [trace for trace in reversed(recent) if trace.kind == "ActionEvent"][:times]
    seen = [trace for trace in reversed(recent) if trace.kind in observations][:times]
    return [*acted, *seen] if 0 < times == len(acted) == len(seen) else None


def _failures(recent: Sequence[Trace], waits: Collection[str]) -> list[Trace]:
    """The newest run of one action that failed and failed: each action, then its failure."""
    newest = list(reversed(recent))
    actions = [trace for trace in newest if trace.kind == "ActionEvent"]
    observations = [trace for trace in newest if trace.kind in OBSERVATIONS]
    run = takewhile(
        lambda pair: pair[0].fingerprint == actions[0].fingerprint and _failed(pair[1], waits),
        zip(actions, observations, strict=False),
    )
    return [trace for pair in run for trace in pair]


def _failed(trace: Trace, waits: Collection[str]) -> bool:
    return trace.kind == "AgentErrorEvent" or (trace.is_error and trace.tool_name not in waits)


def _is_told(trace: Trace) -> bool:
    return trace.kind == "MessageEvent" and trace.source == "environment"


def _same(traces: Sequence[Trace]) -> bool:
    """Whether all say the same; a person's refusals never do, as a person is at work."""
    said = {trace.fingerprint for trace in traces}
    return len(said) == 1 and all(trace.source != "user" for trace in traces)


def _evidence(pattern: str, shown: Sequence[Trace], count: int) -> Evidence:
    seqs = [trace.seq for trace in shown]
    return Evidence(pattern=pattern, first_seq=min(seqs), last_seq=max(seqs), count=count)
