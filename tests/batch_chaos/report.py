"""What came of it, as a table and as JSON."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.result import SampleResult
from evaluation.summary import Summary
from evaluation.tally import summary
from tests.batch_chaos.audit import Found, comparable
from tests.batch_chaos.calls import Bill, Lost
from tests.batch_chaos.plan import Planned, expected
from tests.batch_chaos.strikes import Hunt

SHOWN = 20
"""Breaches that are printed; the JSON has all."""


@dataclass
class Report:
    name: str
    samples: int
    hunt: Hunt
    breaches: list[str] = field(default_factory=list)
    found: Found = field(default_factory=Found)
    bill: Bill = field(default_factory=lambda: Bill(0, 0, (), (), (), ()))
    summary: Summary | None = None
    batch_seconds: float = 0.0
    seconds: float = 0.0

    def compare(self, samples: Sequence[Planned]) -> None:
        """Hold the summary, the bill and what the command said against the plan."""
        due = [expected(one, self.name) for one in samples]
        held = [self.found.results[one.id] for one in due if one.id in self.found.results]
        self.summary = _summary(held, self.samples)
        if self.summary != (plan := _summary(due, self.samples)):
            self.breaches.append("the summary is not that of the plan")
        self._told(plan)
        self.breaches += [
            f"an answer that nobody gave is on record: {one}" for one in self.bill.made_up
        ]
        self.breaches += self.bill.odd
        for lost in self.bill.unexplained:
            self.breaches.append(f"it came to nothing, and nothing befell its worker: {lost.call}")

    def hold_against(self, undisturbed: "Report") -> None:
        """Whether the results are those of the same batch when nobody disturbed it."""
        mine, theirs = self.found.results, undisturbed.found.results
        for name in sorted({*mine, *theirs}):
            if _plain(mine.get(name)) != _plain(theirs.get(name)):
                self.breaches.append(f"{name}: its result is not the undisturbed one")
        if self.summary != undisturbed.summary:
            self.breaches.append("the summary is not the undisturbed one")

    def _told(self, plan: Summary) -> None:
        """What the command said at its end."""
        final, code = self.hunt.researcher.final or {}, self.hunt.researcher.code
        counts = plan.counts
        due: dict[str, Any] = {
            "status": "finished",
            "expected": counts.expected,
            "scored": counts.scored,
            "limited": counts.limited,
            "failed": counts.failed,
            "missing": 0,
            "attempts": plan.attempts,
            "turns": plan.turns,
            "tool_calls": plan.tool_calls,
            "failures": dict(plan.failures),
            "limits": plan.limits,
        }
        told = {name: final.get(name) for name in due}
        if told != due:
            self.breaches.append(f"the command said {told}, not {due}")
        means = {name: one["mean"] for name, one in final.get("scores", {}).items()}
        scores = {one.scorer: one.estimates["mean"].mean for one in plan.measures}
        if means.keys() != scores.keys() or any(abs(means[n] - scores[n]) > 1e-9 for n in scores):
            self.breaches.append(f"the command said the scores are {means}, not {scores}")
        if code != (1 if counts.failed else 0):
            self.breaches.append(f"the command's exit code was {code}")

    def as_json(self) -> dict[str, Any]:
        crew, researcher, bill = self.hunt.crew, self.hunt.researcher, self.bill
        blows = Counter(one.what for one in crew.blows)
        return {
            "batch": self.name,
            "samples": self.samples,
            "seconds": round(self.seconds, 1),
            "batch_seconds": round(self.batch_seconds, 1),
            "strikes": dict(self.hunt.done),
            "SIGKILLs": {
                "of workers": blows["killed"],
                "of Temporal": self.hunt.temporal_kills,
                "of the command": researcher.kills,
            },
            "workers frozen": blows["frozen"],
            "command": {"starts": researcher.starts, "gave up": dict(researcher.gave_up)},
            "workers that could not start": dict(crew.gave_up),
            "events": self.found.events,
            "tool calls with unknown outcome": sum(self.found.unknown.values()),
            "model": {
                "answered": bill.answered,
                "recorded": bill.recorded,
                "charged": bill.charged,
                "paid twice": _explained(bill.twice),
                "cut off": _explained(bill.cut),
                "refused": sum(self.hunt.oracle.refused.values()),
            },
            "summary": self.summary.model_dump(mode="json") if self.summary else None,
            "breaches": self.breaches,
        }


def _summary(results: Sequence[SampleResult], expected: int) -> Summary:
    """As `perdure batch results` makes it, of what does not depend on time."""
    plain = [
        one.model_copy(update={"attempts": tuple(map(comparable, one.attempts))})
        for one in sorted(results, key=lambda one: one.id)
    ]
    return summary(plain, expected)


def _plain(result: SampleResult | None) -> SampleResult | None:
    """Without the name of the batch, which is in the id of its conversation."""
    if result is None:
        return None
    attempts = (comparable(one) for one in result.attempts)
    plain = tuple(one.model_copy(update={"conversation_id": ""}) for one in attempts)
    return result.model_copy(update={"attempts": plain})


def _explained(lost: Sequence[Lost]) -> dict[str, Any]:
    """How many, by what befell their workers; and how soon after the answer, in seconds."""
    whys = Counter(one.blow.what if one.blow else "nothing" for one in lost)
    after = [one.after for one in lost if one.blow and one.blow.what == "killed"]
    told: dict[str, Any] = {"count": len(lost), "worker": dict(whys)}
    if after and lost[0].call.answered is not None:
        told["killed after s"] = {
            "median": round(statistics.median(after), 3),
            "max": round(max(after), 3),
        }
    return told


def table(report: dict[str, Any]) -> str:
    """The JSON for people."""
    kills, model, command = report["SIGKILLs"], report["model"], report["command"]
    lines = [
        f"batch {report['batch']}: {report['samples']:,} samples, {report['events']:,} events",
        f"{report['batch_seconds']:.0f} s, {report['seconds']:.0f} s with start and audit",
        "",
        f"strikes             {_counts(report['strikes'])}",
        f"SIGKILLs            {sum(kills.values())}: {_counts(kills)}",
        f"frozen and thawed   {report['workers frozen']}",
        f"the command         started {command['starts']} times",
        *(f"    gave up {count} times: {why}" for why, count in command["gave up"].items()),
        *(
            f"    workers that could not start at first: {count} ({why} …)"
            for why, count in report["workers that could not start"].items()
        ),
        "",
        *_of_model(model),
        f"calls of tools whose outcome is unknown   {report['tool calls with unknown outcome']}",
        "",
        *_of_summary(report["summary"]),
    ]
    wrong = report["breaches"]
    return "\n".join([*lines, f"breaches            {len(wrong)}", *wrong[:SHOWN]])


def _of_model(model: dict[str, Any]) -> list[str]:
    twice, cut = model["paid twice"], model["cut off"]
    after = twice.get("killed after s")
    soon = f" (s after the answer: median {after['median']}, most {after['max']})" if after else ""
    return [
        f"the model           answered {model['answered']:,}, recorded {model['recorded']:,}, "
        f"refused {model['refused']:,}",
        f"charged             {model['charged']:,} by a server that honours Idempotency-Key",
        f"answered twice      {twice['count']}; its worker was: {_counts(twice['worker'])}{soon}",
        f"hung up on          {cut['count']}; its worker was: {_counts(cut['worker'])}",
    ]


def _of_summary(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    means = {one["scorer"]: one["estimates"]["mean"]["mean"] for one in found["measures"]}
    return [
        f"counts              {_counts(found['counts'])}",
        f"scores              {', '.join(f'{name} {mean:.4f}' for name, mean in means.items())}",
    ]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"
