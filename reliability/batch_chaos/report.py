"""The report of a run, as a table and as JSON."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.evaluation.result import SampleResult
from perdure.evaluation.summary import Summary, summarize
from reliability.batch_chaos.audit import AuditResult, comparable
from reliability.batch_chaos.calls import CallAudit, LostCall
from reliability.batch_chaos.plan import PlannedSample, expected_result
from reliability.batch_chaos.strikes import StrikeRunner

MAX_SHOWN_VIOLATIONS = 20
"""Breaches that are printed; the JSON has all."""


@dataclass
class Report:
    name: str
    samples: int
    strikes: StrikeRunner
    violations: list[str] = field(default_factory=list)
    audit: AuditResult = field(default_factory=AuditResult)
    calls: CallAudit = field(default_factory=lambda: CallAudit(0, 0, (), (), (), ()))
    summary: Summary | None = None
    batch_seconds: float = 0.0
    seconds: float = 0.0

    def compare(self, samples: Sequence[PlannedSample]) -> None:
        """Hold the summary, the bill and what the command said against the plan."""
        due = [expected_result(sample, self.name) for sample in samples]
        held = [self.audit.results[item.id] for item in due if item.id in self.audit.results]
        self.summary = make_summary(held, self.samples)
        if self.summary != (plan := make_summary(due, self.samples)):
            self.violations.append("the summary is not that of the plan")
        self._check_command_output(plan)
        self.violations += [
            f"an answer that nobody gave is on record: {record}"
            for record in self.calls.unknown_records
        ]
        self.violations += self.calls.unexpected
        for lost in self.calls.unexplained:
            self.violations.append(
                f"it came to nothing, and nothing befell its worker: {lost.call}"
            )

    def compare_with_undisturbed(self, undisturbed: "Report") -> None:
        """Compare the results with those of the same batch without disturbance."""
        mine, theirs = self.audit.results, undisturbed.audit.results
        for name in sorted({*mine, *theirs}):
            if without_batch_name(mine.get(name)) != without_batch_name(theirs.get(name)):
                self.violations.append(f"{name}: its result is not the undisturbed one")
        if self.summary != undisturbed.summary:
            self.violations.append("the summary is not the undisturbed one")

    def _check_command_output(self, plan: Summary) -> None:
        """Check the final output of the command."""
        final, code = self.strikes.command.final_output or {}, self.strikes.command.exit_code
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
        actual = {name: final.get(name) for name in due}
        if actual != due:
            self.violations.append(f"the command said {actual}, not {due}")
        means = {name: item["mean"] for name, item in final.get("scores", {}).items()}
        scores = {measure.scorer: measure.estimates["mean"].mean for measure in plan.measures}
        if means.keys() != scores.keys() or any(abs(means[n] - scores[n]) > 1e-9 for n in scores):
            self.violations.append(f"the command said the scores are {means}, not {scores}")
        if code != (1 if counts.failed else 0):
            self.violations.append(f"the command's exit code was {code}")

    def as_json(self) -> dict[str, Any]:
        crew, researcher, bill = self.strikes.workers, self.strikes.command, self.calls
        blows = Counter(disruption.kind for disruption in crew.disruptions)
        return {
            "batch": self.name,
            "samples": self.samples,
            "seconds": round(self.seconds, 1),
            "batch_seconds": round(self.batch_seconds, 1),
            "strikes": dict(self.strikes.done),
            "SIGKILLs": {
                "of workers": blows["killed"],
                "of Temporal": self.strikes.temporal_kills,
                "of the command": researcher.kills,
            },
            "workers frozen": blows["frozen"],
            "command": {"starts": researcher.starts, "gave up": dict(researcher.failed_starts)},
            "workers that could not start": dict(crew.failed_starts),
            "events": self.audit.events,
            "tool calls with unknown outcome": sum(self.audit.unknown_outcomes.values()),
            "model": {
                "answered": bill.answered,
                "recorded": bill.recorded,
                "charged": bill.charged,
                "paid twice": explain_losses(bill.repeated),
                "cut off": explain_losses(bill.cut),
                "refused": sum(self.strikes.model.refused.values()),
            },
            "summary": self.summary.model_dump(mode="json") if self.summary else None,
            "breaches": self.violations,
        }


def make_summary(results: Sequence[SampleResult], expected: int) -> Summary:
    """Summarize as `perdure batch results` does, without the values that depend on time."""
    plain = [
        result.model_copy(update={"attempts": tuple(map(comparable, result.attempts))})
        for result in sorted(results, key=lambda item: item.id)
    ]
    return summarize(plain, expected)


def without_batch_name(result: SampleResult | None) -> SampleResult | None:
    """Without the name of the batch, which is in the id of its conversation."""
    if result is None:
        return None
    attempts = (comparable(attempt) for attempt in result.attempts)
    plain = tuple(attempt.model_copy(update={"conversation_id": ""}) for attempt in attempts)
    return result.model_copy(update={"attempts": plain})


def explain_losses(lost: Sequence[LostCall]) -> dict[str, Any]:
    """Count lost answers by the fate of their workers, with the seconds since the answer."""
    whys = Counter(item.disruption.kind if item.disruption else "nothing" for item in lost)
    after = [item.after for item in lost if item.disruption and item.disruption.kind == "killed"]
    losses: dict[str, Any] = {"count": len(lost), "worker": dict(whys)}
    if after and lost[0].call.answered is not None:
        losses["killed after s"] = {
            "median": round(statistics.median(after), 3),
            "max": round(max(after), 3),
        }
    return losses


def format_report(report: dict[str, Any]) -> str:
    """Format the JSON report as a table."""
    kills, model, command = report["SIGKILLs"], report["model"], report["command"]
    lines = [
        f"batch {report['batch']}: {report['samples']:,} samples, {report['events']:,} events",
        f"{report['batch_seconds']:.0f} s, {report['seconds']:.0f} s with start and audit",
        "",
        f"strikes             {format_counts(report['strikes'])}",
        f"SIGKILLs            {sum(kills.values())}: {format_counts(kills)}",
        f"frozen and thawed   {report['workers frozen']}",
        f"the command         started {command['starts']} times",
        *(f"    gave up {count} times: {why}" for why, count in command["gave up"].items()),
        *(
            f"    workers that could not start at first: {count} ({why} …)"
            for why, count in report["workers that could not start"].items()
        ),
        "",
        *format_calls(model),
        f"calls of tools whose outcome is unknown   {report['tool calls with unknown outcome']}",
        "",
        *format_summary(report["summary"]),
    ]
    wrong = report["breaches"]
    return "\n".join([*lines, f"breaches            {len(wrong)}", *wrong[:MAX_SHOWN_VIOLATIONS]])


def format_calls(model: dict[str, Any]) -> list[str]:
    twice, cut = model["paid twice"], model["cut off"]
    after = twice.get("killed after s")
    soon = f" (s after the answer: median {after['median']}, most {after['max']})" if after else ""
    return [
        f"the model           answered {model['answered']:,}, recorded {model['recorded']:,}, "
        f"refused {model['refused']:,}",
        f"charged             {model['charged']:,} by a server that honours Idempotency-Key",
        f"answered twice      {twice['count']}; its worker was: "
        f"{format_counts(twice['worker'])}{soon}",
        f"hung up on          {cut['count']}; its worker was: {format_counts(cut['worker'])}",
    ]


def format_summary(summary: dict[str, Any] | None) -> list[str]:
    if summary is None:
        return []
    means = {
        measure["scorer"]: measure["estimates"]["mean"]["mean"] for measure in summary["measures"]
    }
    return [
        f"counts              {format_counts(summary['counts'])}",
        f"scores              {', '.join(f'{name} {mean:.4f}' for name, mean in means.items())}",
    ]


def format_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"
