"""The laws of a log, which hold whatever happens to its writers.

The log is read from the bucket itself, by none of the code that is on trial.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, TypeAlias

from perdure.agent.calls.answer import holds_response
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import WAITING_STATUSES, State
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry, parse_entry
from perdure.events.event import answered_action_id, response_of
from perdure.events.messages import MessageEvent
from perdure.events.projection import summarize
from perdure.events.waiting import SignalEvent
from perdure.storage.keys import conversation_prefix, event_id
from perdure.storage.log.reader import LogReader, ResponseRecord
from perdure.storage.log.state import read_state
from reliability.simulation.bucket import Bucket
from reliability.simulation.conversation import USER, WorkflowKnowledge
from reliability.simulation.play import Broken, Schedule
from reliability.simulation.scheduler import SimulatedLoop
from reliability.simulation.steps import events_of
from reliability.simulation.store import Access

OPENED_BY_A_FORK = "fork"


class Log:
    """A conversation as it lies in the bucket: its own slots, and before them its parent's."""

    def __init__(self, schedule: Schedule, conversation_id: str) -> None:
        self.schedule = schedule
        self.conversation_id = conversation_id
        self.known: WorkflowKnowledge = schedule.known[conversation_id]
        self.parent, self.first = schedule.forks.get(conversation_id, ("", 0))
        self.prefix = conversation_prefix(USER, conversation_id)
        self.keys = sorted(
            key for key in schedule.bucket.objects if key.startswith(f"{self.prefix}events/")
        )
        self.own = [self._entry(key) for key in self.keys]
        before = Log(schedule, self.parent).entries[: self.first] if self.parent else []
        self.entries: list[Entry] = [*before, *self.own]
        self.states = [State()]
        """The fold of no event, of the first, of the first two, and so on."""
        for entry in self.entries:
            self.states.append(fold(self.states[-1], [summarize(entry)]))

    def _entry(self, key: str) -> Entry:
        body = self.schedule.bucket.objects[key]
        return parse_entry(int(key.rpartition("/")[2][:6]), body)

    def records(self) -> Iterator[tuple[int, ResponseRecord]]:
        for key, body in self.schedule.bucket.objects.items():
            if key.startswith(f"{self.prefix}responses/"):
                seq = int(key.rpartition("/")[2].removesuffix(".json"))
                yield seq, ResponseRecord.model_validate(json.loads(body))


Law: TypeAlias = Callable[[Log], None]


def check(schedule: Schedule) -> None:
    """Raises Broken where a law does not hold."""
    require(not schedule.loop.problems, f"a task failed unseen: {schedule.loop.problems[:1]}")
    for conversation_id in schedule.known:
        check_slots(schedule, conversation_id)
        log = Log(schedule, conversation_id)
        for law in LAWS:
            law(log)
    check_overwrites(schedule)
    check_effects(schedule)


def check_slots(schedule: Schedule, conversation_id: str) -> None:
    """Slots have no gaps, and each has one object, whose name and id are known beforehand."""
    prefix = conversation_prefix(USER, conversation_id) + "events/"
    keys = sorted(
        key.removeprefix(prefix) for key in schedule.bucket.objects if key.startswith(prefix)
    )
    first = schedule.forks.get(conversation_id, ("", 0))[1]
    due = [
        f"{seq:06d}_{event_id(conversation_id, seq)}.json"
        for seq in range(first, first + len(keys))
    ]
    require(keys == due, f"the slots are {keys}")
    for seq, key in enumerate(due, first):
        held = json.loads(schedule.bucket.objects[prefix + key])["id"]
        require(held == event_id(conversation_id, seq), f"slot {seq} holds the event {held}")


def check_overwrites(schedule: Schedule) -> None:
    changed = [key for key in schedule.bucket.overwritten if "/events/" in key or "/resp" in key]
    require(not changed, f"objects were overwritten: {changed}")


def check_effects(schedule: Schedule) -> None:
    twice = [deed for deed, times in schedule.temporal.outside.actions.items() if times > 1]
    require(not twice, f"actions were done twice that must not be: {twice}")
    needless = schedule.temporal.outside.needless
    require(not needless, f"paid for again, though it was on record: {needless}")


def check_event_order(log: Log) -> None:
    """Nothing is stored twice, and what one step wrote stands in its order."""
    steps: dict[tuple[str, str], list[int]] = defaultdict(list)
    for entry in log.entries:
        steps[entry.origin.run, entry.origin.activity].append(entry.origin.position)
    for step, positions in steps.items():
        require(positions == list(range(len(positions))), f"step {step} stored {positions}")


def check_acknowledged_slots(log: Log) -> None:
    """Check that every acknowledged slot is there, unchanged and unmoved."""
    require(not log.known.contradicted, f"told twice, and differently: {log.known.contradicted}")
    for seq, sha in log.known.slots.items():
        require(seq < len(log.entries), f"slot {seq} was acknowledged, and is not there")
        require(log.entries[seq].sha == sha, f"slot {seq} is not what was acknowledged")


def check_messages(log: Log) -> None:
    """Every message that was recorded is there, and none of them twice."""
    events = [entry.event for entry in log.own]
    stored = Counter(event.message_id for event in events if isinstance(event, MessageEvent))
    stored.pop(None, None)
    require(set(stored.values()) <= {1}, f"a message is stored twice: {stored.most_common(1)}")
    lost = [message_id for message_id in log.known.message_ids if message_id not in stored]
    require(not lost, f"messages were lost: {lost}")


def check_signals(log: Log) -> None:
    """Every signal that was recorded is there, none twice, and who waits has a wait."""
    events = [entry.event for entry in log.own]
    stored = Counter(event.signal_id for event in events if isinstance(event, SignalEvent))
    require(set(stored.values()) <= {1}, f"a signal is stored twice: {stored.most_common(1)}")
    lost = [signal_id for signal_id in log.known.signal_ids if signal_id not in stored]
    require(not lost, f"signals were lost: {lost}")
    for state in log.states:  # one that is paused may have a wait, too
        what = f"a conversation of {state.next_seq} events is {state.status}, with {state.wait}"
        require(state.wait is not None or state.status not in WAITING_STATUSES, what)
        pending = {action.action_id for action in state.pending}
        require(state.wait is None or state.wait.action_id in pending, what)


def check_observations(log: Log) -> None:
    """An action is answered once at most, behind it, and nothing else is answered."""
    answers: set[str] = set()
    actions: set[str] = set()
    for entry in log.entries:
        if entry.event.kind == "ActionEvent":
            actions.add(entry.event.id)
        if (action := answered_action_id(entry.event)) is not None:
            require(action in actions, f"slot {entry.seq} answers an action that is not there")
            require(action not in answers, f"slot {entry.seq} answers an action again")
            answers.add(action)


def check_fencing(log: Log) -> None:
    """Behind a run's `opened` there are only its events, and those of the runs it hands over to."""
    chains = {name: chain for chain in log.known.chains for name in chain}
    holder: list[str] = []
    for entry in log.own:
        run = entry.origin.run
        if run == OPENED_BY_A_FORK:
            require(entry.seq == log.first, f"slot {entry.seq} is a fork's, and not the first")
            continue
        event = entry.event
        if isinstance(event, ConversationStateUpdateEvent) and event.key == "opened":
            require(chains[run] is not holder, f"slot {entry.seq}: {run} opened the log twice")
            holder = chains[run]
        require(run in holder, f"slot {entry.seq} is by {run}, behind the opening by {holder[:1]}")
    order = [chains[e.origin.run].index(e.origin.run) for e in log.own if e.origin.run in chains]
    names = [chains[e.origin.run][0] for e in log.own if e.origin.run in chains]
    for (item, name), (other, then) in pairwise(zip(order, names, strict=True)):
        require(name != then or item <= other, f"a run of {name} wrote behind the one after it")


def check_saved_state(log: Log) -> None:
    """The state that a workflow kept is the fold of the log up to there."""
    for saved in log.known.states:
        require(
            saved.next_seq < len(log.states), f"a workflow knows {saved.next_seq} events, too many"
        )
        require(
            saved == log.states[saved.next_seq],
            f"the state of {saved.next_seq} events is not the fold of the log",
        )


def check_caches(log: Log) -> None:
    """Check that the cached objects beside the log change nothing of it."""
    loop = SimulatedLoop(0)  # type: ignore[abstract]
    bucket = Bucket(loop, 0.0, 0.0)
    bucket.objects = log.schedule.bucket.objects
    state = loop.play(read_state(LogReader(Access(bucket, 0.0), USER, log.conversation_id)))
    require(state == log.states[-1], "the kept state is not what the log says")


def check_responses(log: Log) -> None:
    """Check that the log has a recorded answer whole, with one bill, unless it was fenced."""
    written: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in log.own:
        written[entry.origin.run, entry.origin.activity].append(entry)
    for seq, record in log.records():
        stored = written.get((record.origin.run, record.origin.activity), [])
        if not stored:
            continue
        if not holds_response(stored[0].event, record.completion):
            # Another attempt's answer came first: it was one event, which needs no record.
            require(len(stored) == 1, f"the answer recorded at {seq} follows another one")
            continue
        contents = [event_content(entry.event) for entry in stored]
        meant = [event_content(event) for event in events_of(record.completion)]
        step = record.origin.run, record.origin.activity
        cut = step in log.schedule.temporal.stopped or ended_behind(log, stored[-1])
        require(
            contents == meant or (cut and contents == meant[: len(contents)]),
            f"of the answer recorded at {seq}, the log holds {contents}, not {meant}",
        )
        require(stored[0].usage is not None, f"the answer recorded at {seq} is not billed")
        require(all(e.usage is None for e in stored[1:]), f"the answer at {seq} is billed twice")


def check_bills(log: Log) -> None:
    """Check that the events of one step are of one answer, and that the first has the bill."""
    steps: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in log.own:
        if response_of(entry.event) is not None:
            steps[entry.origin.run, entry.origin.activity].append(entry)
    for step, stored in steps.items():
        answers = {response_of(entry.event) for entry in stored}
        require(len(answers) == 1, f"step {step} stored events of the answers {answers}")
        require(stored[0].usage is not None, f"the answer of step {step} is not billed")


def ended_behind(log: Log, last: Entry) -> bool:
    """Tell whether the run ended behind this entry: another one opened the log, or nobody did."""
    behind = log.entries[last.seq + 1 : last.seq + 2]
    return not behind or behind[0].origin.run != last.origin.run


def event_content(event: Any) -> tuple[str, str | None]:
    return event.kind, getattr(event, "tool_call_id", None)


def check_readers(log: Log) -> None:
    """Check that all readers saw the same in every slot, and that it is there."""
    for reader in log.schedule.readers:
        if reader.log.conversation_id != log.conversation_id:
            continue
        require(not reader.disagreed, f"a reader: {reader.disagreed[:1]}")
        for seq, body in reader.seen.items():
            require(seq < len(log.entries), f"slot {seq} was read, and is not there any more")
            require(log.entries[seq].body == body, f"slot {seq} was read otherwise")


def check_fork(log: Log) -> None:
    """A fork begins with the very events of the conversation that it forks."""
    if not log.parent:
        return
    held = json.loads(log.schedule.bucket.objects[f"{log.prefix}fork.json"])
    require(held["at"] == log.first - 1, "a fork begins at another slot than it says")
    require(
        held["sha"] == log.states[log.first].sha, "a fork begins with other events than its parent"
    )


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


LAWS: tuple[Law, ...] = (
    check_event_order,
    check_acknowledged_slots,
    check_messages,
    check_signals,
    check_observations,
    check_fencing,
    check_saved_state,
    check_caches,
    check_responses,
    check_bills,
    check_readers,
    check_fork,
)
