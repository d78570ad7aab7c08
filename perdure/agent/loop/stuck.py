"""Stuck detection, from the fingerprints of recent events."""

from collections.abc import Collection, Sequence
from itertools import takewhile

from perdure.agent.spec import StuckThresholds
from perdure.events.base import Frozen
from perdure.events.summary import EventSummary

RESULT_KINDS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")

TRACED_KINDS = ("MessageEvent", "ActionEvent", *RESULT_KINDS, "PauseEvent", "InterruptEvent")
"""The kinds that stuck detection compares, or that end a monologue."""


class RecentEvent(Frozen):
    """An event as stuck detection remembers it: about 150 bytes of JSON."""

    seq: int
    kind: str
    source: str
    fingerprint: str
    tool_name: str | None = None
    is_error: bool = False


class StuckEvidence(Frozen):
    """The evidence of a `StuckEvent`: the events from `first_seq` to `last_seq` show `pattern`."""

    pattern: str
    first_seq: int
    last_seq: int
    count: int


def add_recent(
    recent: tuple[RecentEvent, ...], event: EventSummary, thresholds: StuckThresholds
) -> tuple[RecentEvent, ...]:
    """Add an event to the newest `thresholds.window` ones.

    A user's message starts over; a warning to the agent does not.
    """
    if event.kind == "MessageEvent" and event.source == "user":
        return ()
    if event.kind not in TRACED_KINDS:
        return recent
    traces = (*recent, _trace(event))
    return traces[max(0, len(traces) - thresholds.window) :]


def _trace(event: EventSummary) -> RecentEvent:
    return RecentEvent(
        seq=event.seq,
        kind=event.kind,
        source=event.source,
        fingerprint=event.fingerprint,
        tool_name=event.tool_name,
        is_error=bool(event.is_error),
    )


def detect_stuck(
    recent: Sequence[RecentEvent], thresholds: StuckThresholds, polling: Collection[str] = ()
) -> StuckEvidence | None:
    """Return the evidence that the agent is stuck, if there is any.

    Repeating a call of a `polling` tool with the same result is waiting, not being stuck; a call of
    it that could not be made at all is an error like any other.
    """
    return (
        _find_repetition(recent, thresholds.action_observation, polling)
        or _find_failures(recent, thresholds.action_error, polling)
        or _find_monologue(recent, thresholds.monologue)
        or _find_alternation(recent, thresholds, polling)
    )


def warn_of_stuck(
    recent: Sequence[RecentEvent], thresholds: StuckThresholds, polling: Collection[str] = ()
) -> str | None:
    """Return the warning, given once, that the same action has failed `action_error` times.

    A message from the environment after the last failure is that warning.
    """
    failures = _newest_failures(recent, polling)
    if not failures or len(failures) != 2 * thresholds.action_error:
        return None
    last = failures[1].seq
    if any(trace.seq > last and _is_warning(trace) for trace in recent):
        return None
    return (
        f"`{failures[0].tool_name}` was called {thresholds.action_error} times in a row with the "
        "same arguments and failed every time; it will not work the next time either. Read the "
        "error, then change the arguments or try another way. The same failure once more ends "
        "your turn."
    )


def _find_repetition(
    recent: Sequence[RecentEvent], times: int, polling: Collection[str]
) -> StuckEvidence | None:
    traces = _newest(recent, times, RESULT_KINDS)
    if traces is None or any(trace.tool_name in polling for trace in traces):
        return None
    actions, observations = traces[:times], traces[times:]
    if _are_same(actions) and _are_same(observations):
        return _evidence("action_observation", traces, times)
    return None


def _find_failures(
    recent: Sequence[RecentEvent], times: int, polling: Collection[str]
) -> StuckEvidence | None:
    failures = _newest_failures(recent, polling)
    count = len(failures) // 2
    return _evidence("action_error", failures, count) if 0 < times < count else None


def _find_monologue(recent: Sequence[RecentEvent], times: int) -> StuckEvidence | None:
    newest = takewhile(lambda trace: trace.kind == "MessageEvent", reversed(recent))
    messages = [trace for trace in newest if trace.source == "agent"]
    return _evidence("monologue", messages, len(messages)) if 0 < times <= len(messages) else None


def _find_alternation(
    recent: Sequence[RecentEvent], thresholds: StuckThresholds, polling: Collection[str]
) -> StuckEvidence | None:
    """Find two pairs in alternation; a person's rejections between them do not count."""
    # Two pairs alternate only once the first one has come back.
    times = max(thresholds.alternating, 3) if thresholds.alternating > 0 else 0
    traces = _newest(recent, times, RESULT_KINDS[:2])
    if traces is None or any(trace.tool_name in polling for trace in traces):
        return None
    rows = (traces[:times], traces[times:])
    if all(map(_are_same, rows)) and not 0 < thresholds.action_observation <= times:
        return None  # a single pair, repeated within its own threshold
    if all(_are_same(row[start::2]) for row in rows for start in (0, 1)):
        return _evidence("alternating", traces, times)
    return None


def _newest(
    recent: Sequence[RecentEvent], times: int, result_kinds: Sequence[str]
) -> list[RecentEvent] | None:
    """Return the newest actions, then the newest results, `times` of each, if there are so many.

    They are collected separately: the results of parallel calls follow all of the calls.
    """
    actions = [trace for trace in reversed(recent) if trace.kind == "ActionEvent"][:times]
    results = [trace for trace in reversed(recent) if trace.kind in result_kinds][:times]
    return [*actions, *results] if 0 < times == len(actions) == len(results) else None


def _newest_failures(recent: Sequence[RecentEvent], polling: Collection[str]) -> list[RecentEvent]:
    """Return the newest run of failures of one action: each action, then its failure."""
    newest = list(reversed(recent))
    actions = [trace for trace in newest if trace.kind == "ActionEvent"]
    results = [trace for trace in newest if trace.kind in RESULT_KINDS]
    run = takewhile(
        lambda pair: (
            pair[0].fingerprint == actions[0].fingerprint and _is_failure(pair[1], polling)
        ),
        zip(actions, results, strict=False),
    )
    return [trace for pair in run for trace in pair]


def _is_failure(trace: RecentEvent, polling: Collection[str]) -> bool:
    return trace.kind == "AgentErrorEvent" or (trace.is_error and trace.tool_name not in polling)


def _is_warning(trace: RecentEvent) -> bool:
    return trace.kind == "MessageEvent" and trace.source == "environment"


def _are_same(traces: Sequence[RecentEvent]) -> bool:
    """Check for equal fingerprints; a person's rejections are never the same."""
    fingerprints = {trace.fingerprint for trace in traces}
    return len(fingerprints) == 1 and all(trace.source != "user" for trace in traces)


def _evidence(pattern: str, traces: Sequence[RecentEvent], count: int) -> StuckEvidence:
    seqs = [trace.seq for trace in traces]
    return StuckEvidence(pattern=pattern, first_seq=min(seqs), last_seq=max(seqs), count=count)
