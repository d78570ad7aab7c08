"""What must hold of a conversation, whatever befell its workers."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from agent.evolve import fold
from agent.state import State
from events.entry import Entry
from events.projection import digest
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from examples.bfcl.audit import audit
from storage.log import answered
from storage.reader import LogReader
from storage.snapshots.restore import restore
from storage.state import kept_state, state_of
from storage.store import Store
from storage.verify import verify
from tests.crashes.playing import Case, Played
from tests.crashes.talking import DEEDS
from tests.crashes.telling import differences, told

REPEATABLE = ("look", "think")
DEED = {"pay": ("paid", "amount"), "jot": ("jotted", "line")}
"""The file in which a tool leaves a line, and the argument that is the line."""


class Witness:
    """What is known of a conversation once it is over."""

    def __init__(self, played: Played, entries: Sequence[Entry]) -> None:
        self.played = played
        self.entries = entries
        self.told = told(played.conversation_id, entries)
        self.slots = {one.event.id: one.seq for one in entries}
        self.actions = {
            one.event.id: one.event for one in entries if isinstance(one.event, ActionEvent)
        }
        self.answers = {answered(one.event): one.event for one in entries if answered(one.event)}

    @property
    def lost(self) -> list[ActionEvent]:
        """The calls of which the log says that their outcome is unknown."""
        return [
            self.actions[error.action_id]
            for error in self.answers.values()
            if isinstance(error, AgentErrorEvent) and error.classification == "outcome_unknown"
            if error.action_id
        ]


async def witness(store: Store, played: Played) -> Witness:
    log = LogReader(store, "local", played.conversation_id)
    return Witness(played, await log.read(0, await log.end()))


async def judge(store: Store, undisturbed: Witness, seen: Witness) -> list[str]:
    """Every way in which it is not what it would have been; none is what we want."""
    names = [f"answer {one.tool_call_id}" for one in seen.lost]
    return [
        *audit(seen.played.conversation_id, seen.played.objects),
        *differences(undisturbed.told, seen.told, names),
        *_losses(seen),
        *_deeds(seen),
        *_bills(undisturbed, seen),
        *(f"what was thawed altered {key}" for key in seen.played.altered),
        *[each async for each in _kept(store, seen)],
        *[each async for each in _files(store, seen)],
    ]


def _losses(seen: Witness) -> Iterator[str]:
    """Only what must not be done twice may be lost, and only by a worker that was.

    That need not have been at work on it: for a moment Temporal may go on giving it calls.
    """
    case = seen.played.case
    for action in seen.lost:
        begun = f"tool {action.tool_name} {seen.slots[action.id]} #"
        if action.tool_name in REPEATABLE:
            yield f"{action.tool_name} could have been called again, and its outcome is unknown"
        if case is None or case.harm == "lose":
            yield f"the outcome of {action.tool_name} is unknown, and no worker was lost"
        if any(begun in point.name for point in seen.played.resumed):
            yield f"the outcome of {action.tool_name} is unknown to the worker that did it"


def _deeds(seen: Witness) -> Iterator[str]:
    for name, lines in DEEDS.items():
        done = Counter(seen.played.deeds[name])
        if strange := set(done) - set(lines):
            yield f"{name}: {sorted(strange)} were never asked for"
        yield from (f"{name} {line} {done[line]} times" for line in lines if done[line] > 1)
    for action in seen.actions.values():
        deed = _deed(action)
        if deed is None or not isinstance(seen.answers.get(action.id), ObservationEvent):
            continue
        if deed[1] not in seen.played.deeds[deed[0]]:
            yield f"the log says that {action.tool_name} {deed[1]} is done, and it is not"


def _deed(action: ActionEvent) -> tuple[str, str] | None:
    if action.tool_name not in DEED:
        return None
    name, argument = DEED[action.tool_name]
    return name, str(getattr(action.action, "data", {})[argument])


def _bills(undisturbed: Witness, seen: Witness) -> Iterator[str]:
    """An answer is paid for once more where a worker was lost between it and its record.

    One that stands still may ask once more when it is thawed.
    """
    due, paid = Counter(undisturbed.played.bills), Counter(seen.played.bills)
    more = paid - due
    if due - paid:
        yield f"the log has answers that nobody paid for: {dict(due - paid)}"
    if seen.played.case is None or seen.played.case.harm != "freeze":
        if more.total() > 1 or (more and not _is_asking(seen.played.case)):
            yield f"paid for again: {dict(more)}"
    elif any(times > 1 for times in more.values()):
        yield f"paid for more than twice: {dict(more)}"


def _is_asking(case: Case | None) -> bool:
    return case is not None and case.point.name.startswith("llm.")


async def _kept(store: Store, seen: Witness) -> AsyncIterator[str]:
    """What lies beside the log says what the log says."""
    log = LogReader(store, "local", seen.played.conversation_id)
    kept = await kept_state(log)
    if _plain(kept) != _plain(_folded(seen.entries[: kept.next_seq])):
        yield f"the state that was kept is not the fold of the first {kept.next_seq} events"
    if _plain(await state_of(log)) != _plain(_folded(seen.entries)):
        yield "the state of the conversation is not the fold of its log"
    async for finding in verify(log):
        yield f"{finding.key}: {finding.what}"


def _folded(entries: Sequence[Entry]) -> State:
    return fold(State(), [digest(one) for one in entries])


def _plain(state: State) -> State:
    """Without what a workflow knows beyond its log: which calls were lost."""
    pending = tuple(one.model_copy(update={"lost": None}) for one in state.pending)
    return state.model_copy(update={"pending": pending})


async def _files(store: Store, seen: Witness) -> AsyncIterator[str]:
    """The newest snapshot has what the log says was done, and nothing twice."""
    snapshots = [one.files.snapshot for one in seen.entries if one.files and one.files.snapshot]
    if not snapshots:
        yield "the files were never kept"
        return
    folder = seen.played.folder / "restored"
    await restore(store, snapshots[-1], folder)
    notes = Counter(_lines(folder / "notes"))
    lost = {action.id for action in seen.lost}
    for action in seen.actions.values():
        match action.tool_name:
            case "jot":
                line = str(getattr(action.action, "data", {})["line"])
                if notes[line] != 1 and not (notes[line] == 0 and action.id in lost):
                    yield f"the notes have {line!r} {notes[line]} times"
            case "file_editor" if action.id not in lost:
                if (folder / "a/plan").read_text() != "the plan":
                    yield "the plan is not what was written"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
