"""Checks of a conversation that hold whenever and however its worker was lost."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from examples.bfcl.audit import audit
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.events.entry import Entry
from perdure.events.event import answered_action_id
from perdure.events.projection import summarize
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.storage.log.reader import LogReader
from perdure.storage.log.state import load_cached_state, read_state
from perdure.storage.log.verify import verify
from perdure.storage.snapshots.restore import restore
from perdure.storage.store import Store
from perdure.tools.memory import RECALL_NAME
from reliability.crashes.bills import Timeouts, count_repaid, find_unexplained
from reliability.crashes.case import CaseResult
from reliability.crashes.cases import Case
from reliability.crashes.instrumented import LOST
from reliability.crashes.normalized_log import MEMORIES, find_differences, normalize
from reliability.crashes.scenario import EXPECTED_EFFECTS
from reliability.crashes.user import find_user_differences

REPEATABLE = (
    *("look", "peek", "ponder", "think", "one__add", "two__add"),
    *("state", "remember", "recall"),
)
CALL = "tool.call"
"""The type of the activities that call tools."""

EFFECT_FILES = {"pay": ("paid", "amount"), "jot": ("jotted", "line")}
"""The file in which a tool leaves a line, and the argument that is the line."""


class FinishedConversation:
    """A finished conversation: its result, its log and its normalized log."""

    def __init__(self, played: CaseResult, entries: Sequence[Entry]) -> None:
        self.played = played
        self.entries = entries
        self.told = normalize(played.conversation_id, entries)
        self.slots = {entry.event.id: entry.seq for entry in entries}
        self.actions = {
            entry.event.id: entry.event for entry in entries if isinstance(entry.event, ActionEvent)
        }
        self.answers = {
            answered_action_id(entry.event): entry.event
            for entry in entries
            if answered_action_id(entry.event)
        }

    @property
    def lost_calls(self) -> list[ActionEvent]:
        """The calls of which the log says that their outcome is unknown."""
        return [
            self.actions[error.action_id]
            for error in self.answers.values()
            if isinstance(error, AgentErrorEvent) and error.classification == "outcome_unknown"
            if error.action_id
        ]


async def read_conversation(store: Store, played: CaseResult) -> FinishedConversation:
    log = LogReader(store, played.user_id, played.conversation_id)
    return FinishedConversation(played, await log.read(0, await log.end()))


async def find_violations(
    store: Store, undisturbed: FinishedConversation, seen: FinishedConversation
) -> list[str]:
    """List the differences from the undisturbed conversation; none are allowed."""
    names = [f"answer {call.tool_call_id}" for call in seen.lost_calls]
    names += find_lost_searches(seen)
    return [
        *audit(seen.played.conversation_id, seen.played.objects),
        *find_differences(undisturbed.told, seen.told, names),
        *check_lost_calls(seen),
        *check_effects(seen),
        *check_bills(undisturbed, seen),
        *find_user_differences(undisturbed.played.user, seen.played.user),
        *(f"what was thawed altered {key}" for key in seen.played.altered),
        *[each async for each in check_derived_objects(store, seen)],
        *[each async for each in check_snapshot(store, seen)],
    ]


def find_lost_searches(seen: FinishedConversation) -> list[str]:
    """Find the searches of memories that met a lost request to the store, and say so.

    They do not wait for the store: a turn goes on without memories.
    """
    if seen.played.case is None or seen.played.case.harm != "lose":
        return []
    searches = {
        f"answer {call.tool_call_id}"
        for call in seen.actions.values()
        if call.tool_name == RECALL_NAME
    }
    return [
        name
        for name, event in seen.told.items()
        if (name in searches or name.startswith(MEMORIES)) and str(LOST) in str(event)
    ]


def check_lost_calls(seen: FinishedConversation) -> Iterator[str]:
    """Only what must not be done twice may be lost, and only by a worker that was.

    That need not have been at work on it: for a moment Temporal may go on giving it calls. A worker
    that is silent for too long counts as lost: Temporal's history says that its call timed out.
    """
    case, timeouts, lost = seen.played.case, seen.played.timeouts, seen.lost_calls
    late = sum(times for activity, times in timeouts.items() if activity.type == CALL)
    if (case is None or case.harm == "lose") and len(lost) > late:
        yield f"{len(lost)} outcomes are unknown, {late} calls timed out, and no worker was lost"
    for action in lost:
        begun = f"tool {action.tool_name} {seen.slots[action.id]} #"
        if action.tool_name in REPEATABLE:
            yield f"{action.tool_name} could have been called again, and its outcome is unknown"
        if any(begun in point.name for point in seen.played.resumed):
            yield f"the outcome of {action.tool_name} is unknown to the worker that did it"


def check_effects(seen: FinishedConversation) -> Iterator[str]:
    for name, lines in EXPECTED_EFFECTS.items():
        done = Counter(seen.played.effects[name])
        if strange := set(done) - set(lines):
            yield f"{name}: {sorted(strange)} were never asked for"
        yield from (f"{name} {line} {done[line]} times" for line in lines if done[line] > 1)
    for action in seen.actions.values():
        deed = effect_of(action)
        if deed is None or not isinstance(seen.answers.get(action.id), ObservationEvent):
            continue
        if deed[1] not in seen.played.effects[deed[0]]:
            yield f"the log says that {action.tool_name} {deed[1]} is done, and it is not"


def effect_of(action: ActionEvent) -> tuple[str, str] | None:
    if action.tool_name not in EFFECT_FILES:
        return None
    name, argument = EFFECT_FILES[action.tool_name]
    return name, str(getattr(action.action, "data", {})[argument])


def check_bills(undisturbed: FinishedConversation, seen: FinishedConversation) -> Iterator[str]:
    """An answer is paid for once more where a worker was lost between it and its record.

    A worker that is silent for too long counts as lost: it may only have had too little of a busy
    machine. Then Temporal's history says that its attempt timed out, which is why this one answer
    may be paid for again. One that stands still may ask once more when it is thawed.
    """
    due, paid, case = undisturbed.played.bills, seen.played.bills, seen.played.case
    if unpaid := count_repaid(paid, due):
        yield f"the log has answers that nobody paid for: {dict(unpaid)}"
    more = find_unexplained(due, paid, seen.played.timeouts)
    if case is None or case.harm != "freeze":
        if more.total() > int(may_pay_again(case, seen.played.timeouts)):
            yield f"paid for again: {dict(more)}, and {dict(seen.played.timeouts)} timed out"
    elif any(times > 1 for times in more.values()):
        yield f"paid for more than twice: {dict(more)}"


def may_pay_again(case: Case | None, timeouts: Timeouts) -> bool:
    """Tell whether a loss asks the model once more without an attempt that timed out.

    So it is where a request to the store was, and where the step was a local activity.
    """
    if case is None or not case.is_model_call:
        return False
    return case.harm == "lose" or not timeouts


async def check_derived_objects(store: Store, seen: FinishedConversation) -> AsyncIterator[str]:
    """Check that the objects beside the log agree with it."""
    log = LogReader(store, seen.played.user_id, seen.played.conversation_id)
    cached = await load_cached_state(log)
    if cached != fold_entries(seen.entries[: cached.next_seq]):
        yield f"the state that was kept is not the fold of the first {cached.next_seq} events"
    if await read_state(log) != fold_entries(seen.entries):
        yield "the state of the conversation is not the fold of its log"
    async for finding in verify(log):
        yield f"{finding.key}: {finding.detail}"


def fold_entries(entries: Sequence[Entry]) -> State:
    return fold(State(), [summarize(entry) for entry in entries])


async def check_snapshot(store: Store, seen: FinishedConversation) -> AsyncIterator[str]:
    """The newest snapshot has what the log says was done, and nothing twice."""
    snapshots = [
        entry.files.snapshot for entry in seen.entries if entry.files and entry.files.snapshot
    ]
    if not snapshots:
        yield "the files were never kept"
        return
    folder = seen.played.folder / "restored"
    await restore(store, snapshots[-1], folder)
    notes = Counter(read_lines(folder / "notes"))
    lost = {action.id for action in seen.lost_calls}
    for action in seen.actions.values():
        match action.tool_name:
            case "jot":
                line = str(getattr(action.action, "data", {})["line"])
                if notes[line] != 1 and not (notes[line] == 0 and action.id in lost):
                    yield f"the notes have {line!r} {notes[line]} times"
            case "file_editor" if action.id not in lost:
                if (folder / "a/plan").read_text() != "the plan":
                    yield "the plan is not what was written"


def read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
