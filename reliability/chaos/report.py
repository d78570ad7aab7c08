"""The report of a run, as a table and as JSON."""

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from examples.bfcl.objects import Objects, StoredEvent, recorded_response_ids
from reliability.chaos import proxy
from reliability.chaos.audit.calls import successful_calls
from reliability.chaos.audit.log import OUTCOME_UNKNOWN_TEXT, Violation, ViolationKind
from reliability.chaos.load.conversations import HEARTBEAT_TIMEOUT, LoadConversation
from reliability.chaos.load.debates import LoadDebate
from reliability.chaos.proxy import FaultyProxy
from reliability.chaos.state_tools import SIGNING_TOOLS
from reliability.chaos.strikes import Strike, StrikeKind
from reliability.chaos.tools import Effect
from reliability.chaos.worker_pool import WorkerPool

EVENT_KEY = re.compile(r"/conversations/([0-9a-f-]{36})/events/\d{6}_")

EQUIPPED_CALLS = {
    "commands_with_secrets_in_a_clone": ("terminal",),
    "calls_of_mcp_servers": ("one__add", "two__add"),
    "calls_of_the_session_state": ("state", *SIGNING_TOOLS),
    "memories_acknowledged": ("remember",),
    "searches_of_memories": ("recall",),
}
"""Rows of the report, and the tools whose successful calls they count."""

MAX_SHOWN_VIOLATIONS = 20
"""Violations that are printed; the JSON has all."""


@dataclass
class Report:
    seed: int
    strikes: Sequence[Strike]
    writes: Sequence[proxy.StoredWrite]
    network: FaultyProxy
    workers: WorkerPool
    violations: list[tuple[str, Violation]] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    conversations: int = 0
    messages: int = 0
    retries: int = 0
    unknown_outcomes: Counter[str] = field(default_factory=Counter)
    unknown_but_effective: int = 0
    late_results: int = 0
    moves: int = 0
    responses_generated: int = 0
    responses_recorded: int = 0
    effects: int = 0
    equipped: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    """Successful calls of the tools of agents that start with a clone, secrets and servers."""
    marks: int = 0
    memories: int = 0
    debates: int = 0
    debate_events: int = 0
    seconds: float = 0.0

    def count(
        self,
        talk: LoadConversation,
        events: Sequence[StoredEvent],
        objects: Objects,
        effects: Sequence[Effect],
    ) -> None:
        """Add the figures of one conversation."""
        self.conversations += 1
        self.messages += sum(map(len, talk.message_ids.values()))
        self.retries += talk.retries
        self.kinds.update(event.kind for event in events)
        done = {effect.action_id for effect in effects}
        for event in events:
            if (classification := event.fields.get("classification")) in OUTCOME_UNKNOWN_TEXT:
                self.unknown_outcomes[classification] += 1
                self.unknown_but_effective += event.fields.get("action_id") in done
        # Nothing in this load is too long for an event, so that every blob is a late result.
        self.late_results += sum("/blobs/" in key for key in objects)
        self.moves += count_moves(events)
        self.responses_recorded += len(recorded_response_ids(objects))
        self.equipped += talk.equipped
        for name, tools in EQUIPPED_CALLS.items():
            self.calls[name] += sum(1 for _ in successful_calls(events, *tools))

    def count_debate(self, debate: LoadDebate, events: int, turns: Sequence[Objects]) -> None:
        """Add the figures of one debate, and of the conversations in which its agents speak."""
        self.debates += 1
        self.retries += debate.retries
        self.debate_events += events
        self.responses_recorded += sum(len(recorded_response_ids(objects)) for objects in turns)

    def count_violations(self, wrong: ViolationKind) -> int:
        return sum(violation.kind is wrong for _, violation in self.violations)

    def recovery_times(self, kind: StrikeKind) -> list[float]:
        """Seconds from each strike to the next event of each conversation that it hit, sorted.

        An event counts whose write set out after the strike.
        """
        events: dict[str, list[proxy.StoredWrite]] = defaultdict(list)
        for write in self.writes:
            if match := EVENT_KEY.search(write.path):
                events[match[1]].append(write)
        found_at = []
        for strike in self.strikes:
            for conversation_id in {
                held for held, _ in strike.interrupted_steps if strike.kind == kind
            }:
                later = [
                    write.done for write in events[conversation_id] if write.received > strike.at
                ]
                found_at += [min(later) - strike.at] if later else []
        return sorted(found_at)

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "strikes": {
                kind: self._strikes_json(kind) for kind in ("worker", "temporal", "frozen")
            },
            "heartbeat_timeout_s": HEARTBEAT_TIMEOUT,
            "workers_that_could_not_start": dict(self.workers.failed_starts),
            "store": {
                "requests": self.network.requests,
                "faults": self._faults_json(),
                "late_writes_that_took_effect": self.network.late_writes,
            },
            "load": {
                "conversations": self.conversations,
                "messages_acknowledged": self.messages,
                "tries_that_nobody_answered": self.retries,
                "events": sum(self.kinds.values()),
                "actions": self.kinds["ActionEvent"],
                "effects_outside": self.effects,
                **{text: self.unknown_outcomes[text] for text in OUTCOME_UNKNOWN_TEXT},
                "of_these_had_their_effect": self.unknown_but_effective,
                "late_results_kept_aside": self.late_results,
                "moves_to_another_machine": self.moves,
                "answers_given_by_the_model": self.responses_generated,
                "answers_on_record": self.responses_recorded,
                "with_a_clone_secrets_and_servers": self.equipped,
                **{name: self.calls[name] for name in EQUIPPED_CALLS},
                "marks_in_shared_values": self.marks,
                "memories_stored": self.memories,
                "discussions": self.debates,
                "events_of_discussions": self.debate_events,
            },
            "violations": {wrong.value: self.count_violations(wrong) for wrong in ViolationKind},
            "what": [
                f"{where}: {item.kind.value}: {item.description}" for where, item in self.violations
            ],
        }

    def _strikes_json(self, kind: StrikeKind) -> dict[str, Any]:
        strikes = [strike for strike in self.strikes if strike.kind == kind]
        steps = Counter(step for strike in strikes for _, step in strike.interrupted_steps)
        return {
            "count": len(strikes),
            "in_the_middle": sum(bool(strike.interrupted_steps) for strike in strikes),
            "steps_in_hand": dict(steps.most_common()),
            "recovery_s": summarize_times(self.recovery_times(kind)),
        }

    def _faults_json(self) -> dict[str, dict[str, int]]:
        counts: dict[str, dict[str, int]] = defaultdict(dict)
        for (method, fault), count in sorted(self.network.hits.items(), key=str):
            counts[fault.value][method] = count
        return dict(counts)


def count_moves(events: Sequence[StoredEvent]) -> int:
    """Count how often the files moved to another machine."""
    trees = (event.fields.get("files") for event in events)
    homes = [files["home"] for files in trees if files]
    return sum(before != after for before, after in pairwise(homes))


def summarize_times(seconds: Sequence[float]) -> Mapping[str, float]:
    """`seconds` are sorted."""
    if not seconds:
        return {}
    return {
        "count": len(seconds),
        "median": round(statistics.median(seconds), 2),
        "p90": round(seconds[int(0.9 * (len(seconds) - 1))], 2),
        "max": round(seconds[-1], 2),
    }


def format_report(report: Mapping[str, Any]) -> str:
    """Format the JSON report as a table."""
    lines = [f"seed {report['seed']}, {report['seconds']:.0f} s", ""]
    for kind, struck in report["strikes"].items():
        lines.append(f"{STRIKE_LABELS[kind]:24} {struck['count']:5}   in the middle of something: "
                     f"{struck['in_the_middle']}")  # fmt: skip
        if struck["steps_in_hand"]:
            steps = ", ".join(f"{step} {count}" for step, count in struck["steps_in_hand"].items())
            lines.append(f"{'':8}steps in hand: {steps}")
        if struck["recovery_s"]:
            times = ", ".join(f"{name} {value}" for name, value in struck["recovery_s"].items())
            lines.append(f"{'':8}next event after, s: {times}")
    for reason, count in report["workers_that_could_not_start"].items():
        lines.append(f"{'':8}could not start at first: {count} ({reason} …)")
    lines += ["", f"{report['store']['requests']:,} requests of the workers to the store; faults:"]
    for fault, methods in report["store"]["faults"].items():
        counts = ", ".join(f"{method} {count}" for method, count in methods.items())
        lines.append(f"{'':8}{fault:40} {counts}")
    late = report["store"]["late_writes_that_took_effect"]
    lines += [f"{'':8}late writes that took effect: {late}", ""]
    for name, count in report["load"].items():
        lines.append(f"{name.replace('_', ' '):36} {count:8,}")
    lines.append("")
    for name, count in report["violations"].items():
        lines.append(f"{name:36} {count:8,}")
    lines += ["", *report["what"][:MAX_SHOWN_VIOLATIONS]] if report["what"] else []
    return "\n".join(lines)


STRIKE_LABELS = {
    "worker": "worker SIGKILLed",
    "temporal": "Temporal SIGKILLed",
    "frozen": "worker frozen and thawed",
}
