"""How far a batch is, for a person who looks at a terminal, in a line of a log, and as JSON."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from cli.output import plain
from evaluation.progress import COUNTED, Mean, Progress, standard_error

HEAD = 12
"""Columns before what is told."""

BAR = 32

SCORES = 12
"""Scorers and metrics that are shown; `-o json` has them all."""

LONGEST = 300
"""Characters of a reason."""

UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))

STYLES = {"running": "bold", "paused": "bold yellow", "stopped": "bold red", "finished": "bold"}


def lines_of(progress: Progress, trouble: str | None = None) -> list[Text]:
    """All of it, over several lines."""
    lines = [_first(progress), _counts(progress), *_scores(progress), _spent(progress)]
    if progress.status == "running" and (pace := pace_of(progress)):
        lines.append(_line("pace", pace))
    if progress.limits:
        lines.append(_line("limits", _by_number(progress.limits)))
    if progress.failures:
        lines.append(_line("failures", _by_number(progress.failures), "red"))
        if progress.newest_failure:
            lines.append(_line("", f"the newest: {_short(progress.newest_failure)}", "red"))
    if progress.reason:
        lines.append(_line(progress.status, _short(progress.reason), STYLES[progress.status]))
    if trouble:
        lines.append(_line("waits", _short(trouble), "yellow"))
    return lines


def line_of(progress: Progress) -> str:
    """The most of it in one line."""
    others = {name: getattr(progress, name) for name in ("failed", "running", "missing")}
    told = [f"{progress.done:,} of {progress.expected:,} done"]
    told += [f"{count:,} {name}" for name, count in others.items() if count]
    scores = [f"{name} {score_of(one)}" for name, one in progress.scores.items()][:SCORES]
    spent = [dollars(progress.spent.cost)] if progress.spent.cost else []
    pace = [pace_of(progress)] if progress.status == "running" else [progress.status]
    parts = [", ".join(told), *scores, *spent, *filter(None, pace)]
    return f"{progress.name}: {'; '.join(parts)}"


def end_of(progress: Progress) -> str:
    """What is left to do, in one sentence."""
    if is_whole(progress):
        limited = f", {progress.limited:,} of them at a limit" if progress.limited else ""
        return f"All {progress.expected:,} have a score{limited}."
    left = [f"{progress.failed:,} failed"] if progress.failed else []
    if missing := progress.missing + progress.running:
        left.append(f"{missing:,} {'is' if missing == 1 else 'are'} missing")
    return f"{' and '.join(left)}: `perdure batch retry {progress.name}` runs what is left."


def is_whole(progress: Progress) -> bool:
    """Whether every epoch that was expected has come to a score, also at a limit."""
    return not (progress.failed or progress.missing or progress.running)


def result_of(progress: Progress) -> dict[str, Any]:
    """All of it as JSON, with what is derived."""
    scores = {
        name: {"count": one.count, "mean": one.mean, "standard_error": standard_error(one)}
        for name, one in progress.scores.items()
    }
    derived = {
        "done": progress.done,
        "missing": progress.missing,
        "seconds_left": progress.seconds_left,
        "scores": scores,
        "spent": {name: getattr(progress.spent, name) for name in COUNTED},
    }
    return {**progress.model_dump(mode="json"), **derived}


def score_of(score: Mean) -> str:
    """The mean and its standard error."""
    if score.mean is None:
        return "-"
    error = standard_error(score)
    return f"{score.mean:.3f}" + (f" ± {error:.3f}" if error is not None else "")


def pace_of(progress: Progress) -> str:
    """How fast it is, and when it will be done; empty while nobody can tell."""
    left = progress.seconds_left
    if left is None or not progress.seconds:
        return ""
    each = progress.finished / progress.seconds
    per = ((1.0, "a second"), (60.0, "a minute"), (3600.0, "an hour"))
    times, unit = next((one for one in per if each * one[0] >= 1), per[-1])
    return f"{each * times:.1f} {unit}, {duration(left)} left"


def duration(seconds: float) -> str:
    """In its two largest units."""
    left, parts = round(seconds), list[str]()
    for unit, size in UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}")
        if len(parts) == 2:
            break
    return " ".join(one for one in parts if not one.startswith("0 ")) or "0 s"


def dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 10 else f"${cost:.4f}"


def _first(progress: Progress) -> Text:
    """Its name, and a bar of what has been done."""
    share = progress.done / progress.expected if progress.expected else 0.0
    # Rounded down: what is not all is never shown as all.
    percent = int(100 * share)
    at_work = f"  {duration(progress.seconds)} at work" if progress.seconds >= 1 else ""
    name = Text(plain(progress.name), STYLES[progress.status])
    return Text.assemble(name, "  ", _bar(progress), f"  {percent} %  ", progress.status, at_work)


def _bar(progress: Progress) -> Text:
    parts = (
        (progress.done, "━", "green"),
        (progress.failed, "━", "red"),
        (progress.running, "╍", "yellow"),
        (progress.missing, "─", "dim"),
    )
    total, before, bar = sum(one[0] for one in parts) or 1, 0, Text()
    for count, sign, style in parts:
        start, end = before * BAR // total, (before + count) * BAR // total
        bar.append(sign * (end - start), style)
        before += count
    return bar


def _counts(progress: Progress) -> Text:
    names = ("done", "failed", "running", "missing")
    told = ", ".join(f"{getattr(progress, name):,} {name}" for name in names)
    return _line("samples", f"{told} of {progress.expected:,}")


def _scores(progress: Progress) -> list[Text]:
    shown = list(progress.scores.items())[:SCORES]
    lines = [
        Text.assemble(_head("score" if not at else ""), f"{plain(name)}  ", (score_of(one), "bold"))
        .append(f"  of {one.count:,}", "dim")
        for at, (name, one) in enumerate(shown)
    ]  # fmt: skip
    if more := len(progress.scores) - len(shown):
        lines.append(_line("", f"and {more} more"))
    return lines


def _spent(progress: Progress) -> Text:
    spent = progress.spent
    tokens = spent.prompt_tokens + spent.completion_tokens
    cost = dollars(spent.cost) + (f" of {dollars(progress.cost)}" if progress.cost else "")
    of_tokens = f" of {progress.tokens:,}" if progress.tokens else ""
    return _line("spent", f"{cost}, {tokens:,}{of_tokens} tokens, {progress.turns:,} answers")


def _by_number(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{name} {count:,}" for name, count in ordered)


def _line(head: str, told: str, style: str = "") -> Text:
    return Text.assemble(_head(head), (plain(told), style))


def _head(name: str) -> tuple[str, str]:
    return f"  {name:<{HEAD - 2}}", "dim"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
