"""What came of it, as a table and as JSON."""

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from examples.bfcl.objects import Objects, Stored
from tests.chaos import proxy
from tests.chaos.audit import TOLD, Violation, Wrong
from tests.chaos.crew import Crew
from tests.chaos.load import SILENCE, Talk
from tests.chaos.proxy import FaultyProxy
from tests.chaos.strikes import Kind, Strike
from tests.chaos.tools import Effect

EVENT = re.compile(r"/conversations/([0-9a-f-]{36})/events/\d{6}_")

SHOWN = 20
"""Violations that are printed; the JSON has all."""


@dataclass
class Report:
    seed: int
    strikes: Sequence[Strike]
    writes: Sequence[proxy.Stored]
    network: FaultyProxy
    crew: Crew
    violations: list[tuple[str, Violation]] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    conversations: int = 0
    said: int = 0
    tries: int = 0
    told: Counter[str] = field(default_factory=Counter)
    told_and_done: int = 0
    late_results: int = 0
    moves: int = 0
    answers_paid: int = 0
    answers_kept: int = 0
    effects: int = 0
    seconds: float = 0.0

    def count(
        self, talk: Talk, events: Sequence[Stored], objects: Objects, effects: Sequence[Effect]
    ) -> None:
        """Take in one conversation."""
        self.conversations += 1
        self.said += sum(map(len, talk.said.values()))
        self.tries += talk.tries
        self.kinds.update(event.kind for event in events)
        done = {effect.action_id for effect in effects}
        for event in events:
            if (told := event.fields.get("classification")) in TOLD:
                self.told[told] += 1
                self.told_and_done += event.fields.get("action_id") in done
        # Nothing in this load is too long for an event, so that every blob is a late result.
        self.late_results += sum("/blobs/" in key for key in objects)
        self.moves += moves(events)
        self.answers_kept += sum("/responses/" in key for key in objects)

    def wrong(self, wrong: Wrong) -> int:
        return sum(violation.wrong is wrong for _, violation in self.violations)

    def recoveries(self, kind: Kind) -> list[float]:
        """Seconds from each strike to the next event of each conversation that it hit, sorted.

        An event counts whose write set out after the strike.
        """
        events: dict[str, list[proxy.Stored]] = defaultdict(list)
        for write in self.writes:
            if found := EVENT.search(write.path):
                events[found[1]].append(write)
        found_at = []
        for strike in self.strikes:
            for conversation_id in {held for held, _ in strike.held if strike.kind == kind}:
                later = [
                    write.done for write in events[conversation_id] if write.received > strike.at
                ]
                found_at += [min(later) - strike.at] if later else []
        return sorted(found_at)

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "strikes": {kind: self._struck(kind) for kind in ("worker", "temporal", "frozen")},
            "heartbeat_timeout_s": SILENCE,
            "workers_that_could_not_start": dict(self.crew.gave_up),
            "store": {
                "requests": self.network.asked,
                "faults": self._faults(),
                "late_writes_that_took_effect": self.network.late_writes,
            },
            "load": {
                "conversations": self.conversations,
                "messages_acknowledged": self.said,
                "tries_that_nobody_answered": self.tries,
                "events": sum(self.kinds.values()),
                "actions": self.kinds["ActionEvent"],
                "effects_outside": self.effects,
                **{told: self.told[told] for told in TOLD},
                "of_these_had_their_effect": self.told_and_done,
                "late_results_kept_aside": self.late_results,
                "moves_to_another_machine": self.moves,
                "answers_given_by_the_model": self.answers_paid,
                "answers_on_record": self.answers_kept,
            },
            "violations": {wrong.value: self.wrong(wrong) for wrong in Wrong},
            "what": [f"{where}: {one.wrong.value}: {one.what}" for where, one in self.violations],
        }

    def _struck(self, kind: Kind) -> dict[str, Any]:
        strikes = [strike for strike in self.strikes if strike.kind == kind]
        steps = Counter(step for strike in strikes for _, step in strike.held)
        return {
            "count": len(strikes),
            "in_the_middle": sum(bool(strike.held) for strike in strikes),
            "steps_in_hand": dict(steps.most_common()),
            "recovery_s": summary(self.recoveries(kind)),
        }

    def _faults(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for (method, fault), count in sorted(self.network.hits.items(), key=str):
            found[fault.value][method] = count
        return dict(found)


def moves(events: Sequence[Stored]) -> int:
    """How often the files went on on another machine than before."""
    told = (event.fields.get("files") for event in events)
    homes = [files["home"] for files in told if files]
    return sum(before != after for before, after in pairwise(homes))


def summary(seconds: Sequence[float]) -> Mapping[str, float]:
    """`seconds` are sorted."""
    if not seconds:
        return {}
    return {
        "count": len(seconds),
        "median": round(statistics.median(seconds), 2),
        "p90": round(seconds[int(0.9 * (len(seconds) - 1))], 2),
        "max": round(seconds[-1], 2),
    }


def table(report: Mapping[str, Any]) -> str:
    """The JSON for people."""
    lines = [f"seed {report['seed']}, {report['seconds']:.0f} s", ""]
    for kind, struck in report["strikes"].items():
        lines.append(f"{STRUCK[kind]:24} {struck['count']:5}   in the middle of something: "
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
        told = ", ".join(f"{method} {count}" for method, count in methods.items())
        lines.append(f"{'':8}{fault:40} {told}")
    late = report["store"]["late_writes_that_took_effect"]
    lines += [f"{'':8}late writes that took effect: {late}", ""]
    for name, count in report["load"].items():
        lines.append(f"{name.replace('_', ' '):36} {count:8,}")
    lines.append("")
    for name, count in report["violations"].items():
        lines.append(f"{name:36} {count:8,}")
    lines += ["", *report["what"][:SHOWN]] if report["what"] else []
    return "\n".join(lines)


STRUCK = {
    "worker": "worker SIGKILLed",
    "temporal": "Temporal SIGKILLed",
    "frozen": "worker frozen and thawed",
}
