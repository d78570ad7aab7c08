"""The progress of a batch as several lines, as one line and as JSON."""

import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from perdure.cli.consoles import stdout
from perdure.cli.output import escape_controls, shorten_line
from perdure.evaluation.progress import Progress, RunningMean
from perdure.evaluation.repeated_failures import failure_advice
from perdure.events.usage import AMOUNTS
from perdure.wording import count

LABEL_COLUMNS = 12
"""Width of the labels' column."""

BAR_COLUMNS = 32

MIN_BAR_COLUMNS = 8

MIN_NAME_COLUMNS = 12
"""Width of a batch's name for which the bar becomes shorter, and the time is left out."""

COMMAND = re.compile(r"`[^`]*`")

MAX_LINE_COLUMNS = 100
"""Width of a text of several lines."""

MAX_REASON_CHARS = 1500
"""Characters of the reason of a pause, at whose end stands what to do."""

MAX_SCORES = 12
"""Scores shown; `-o json` has them all."""

UNIT_SECONDS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))

STYLES = {"running": "bold", "paused": "bold yellow", "stopped": "bold red", "finished": "bold"}


def progress_lines(
    progress: Progress, trouble: str | None = None, columns: int | None = None
) -> list[Text]:
    """Render the progress over several lines, the first of them within so many columns."""
    pace = format_pace(progress) if progress.status == "running" else ""
    newest = progress.newest_failure if progress.failures else None
    reason_style = STYLES[progress.status]
    optional = (
        ("pace", pace, ""),
        ("limits", _format_counts(progress.limits), ""),
        ("failures", _format_counts(progress.failures), "red"),
        ("", newest and f"the newest: {shorten_line(newest)}", "red"),
        *_paragraph(progress.status, progress.reason or "", reason_style),
        *_paragraph("waits", trouble or "", "yellow"),
        *_paragraph("see one", _watch_command(progress), "dim"),
    )
    return [
        _title_line(progress, columns),
        _counts_line(progress),
        *_score_lines(progress),
        _spent_line(progress),
        *(_line(label, text, style) for label, text, style in optional if text),
    ]


def progress_line(progress: Progress) -> str:
    """Render the main figures in one line."""
    others = {name: getattr(progress, name) for name in ("failed", "running", "missing")}
    counts = [f"{progress.done:,} of {progress.expected:,} done"]
    counts += [f"{count:,} {name}" for name, count in others.items() if count]
    scores = [f"{name} {format_score(score)}" for name, score in progress.scores.items()]
    spent = [format_dollars(progress.spent.cost)] if progress.spent.cost else []
    pace = [format_pace(progress)] if progress.status == "running" else [progress.status]
    parts = [", ".join(counts), *scores[:MAX_SCORES], *spent, *filter(None, pace)]
    return f"{progress.name}: {'; '.join(parts)}"


def closing_sentence(progress: Progress) -> str:
    """Say what is left to do, in one sentence."""
    if is_complete(progress):
        limited = f", {progress.limited:,} of them at a limit" if progress.limited else ""
        return f"All {progress.expected:,} have a score{limited}."
    parts = [f"{progress.failed:,} failed"] if progress.failed else []
    missing = progress.missing + progress.running
    if missing:
        parts.append(f"{missing:,} {'is' if missing == 1 else 'are'} missing")
    left = f"{' and '.join(parts)}: "
    if progress.status == "paused":
        return left + f"`perdure batch resume {progress.name}` goes on."
    advice = failure_advice(progress.name, progress.failures, missing > 0)
    return f"{left}{advice}."


def is_complete(progress: Progress) -> bool:
    """Tell whether every expected epoch has a score, also at a limit."""
    return not (progress.failed or progress.missing or progress.running)


def progress_fields(progress: Progress) -> dict[str, Any]:
    """Convert the progress to JSON, with derived figures."""
    scores = {
        name: {"count": score.count, "mean": score.mean, "standard_error": score.standard_error}
        for name, score in progress.scores.items()
    }
    derived = {
        "done": progress.done,
        "missing": progress.missing,
        "seconds_left": progress.seconds_left,
        "scores": scores,
        "spent": {name: getattr(progress.spent, name) for name in AMOUNTS},
    }
    return {**progress.model_dump(mode="json"), **derived}


def format_score(score: RunningMean) -> str:
    """Format the mean and its standard error."""
    if score.mean is None:
        return "-"
    error = score.standard_error
    return f"{score.mean:.3f}" + (f" ± {error:.3f}" if error is not None else "")


def format_pace(progress: Progress) -> str:
    """Format the rate and the time left; empty while they are unknown."""
    seconds_left = progress.seconds_left
    if seconds_left is None or not progress.seconds:
        return ""
    rate = progress.finished / progress.seconds
    units = ((1.0, "a second"), (60.0, "a minute"), (3600.0, "an hour"))
    factor, unit = next((pair for pair in units if rate * pair[0] >= 1), units[-1])
    return f"{rate * factor:.1f} {unit}, {format_duration(seconds_left)} left"


def format_duration(seconds: float) -> str:
    """Format seconds in their two largest units."""
    remaining, parts = round(seconds), list[str]()
    for unit, size in UNIT_SECONDS:
        count, remaining = divmod(remaining, size)
        if count or parts:
            parts.append(f"{count} {unit}")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if not part.startswith("0 ")) or "0 s"


def format_dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 10 else f"${cost:.4f}"


def _title_line(progress: Progress, columns: int | None) -> Text:
    """Render the name, the progress bar and the status; too long a name is shortened."""
    share = progress.done / progress.expected if progress.expected else 0.0
    # Rounded down: 100 % means all.
    percent = int(100 * share)
    at_work = f"  {format_duration(progress.seconds)} at work" if progress.seconds >= 1 else ""
    name = Text(escape_controls(progress.name), STYLES[progress.status])
    status = f"  {percent} %  {progress.status}"
    least, room = min(name.cell_len, MIN_NAME_COLUMNS), (columns or 10_000) - len(status) - 2
    bar = max(MIN_BAR_COLUMNS, min(BAR_COLUMNS, room - least))
    if room - bar - len(at_work) < least:
        at_work = ""
    name.truncate(max(1, room - bar - len(at_work)), overflow="ellipsis")
    return Text.assemble(name, "  ", _progress_bar(progress, bar), status, at_work)


def _progress_bar(progress: Progress, columns: int) -> Text:
    parts = (
        (progress.done, "━", "green"),
        (progress.failed, "━", "red"),
        (progress.running, "╍", "yellow"),
        (progress.missing, "─", "dim"),
    )
    total, before, bar = sum(part[0] for part in parts) or 1, 0, Text()
    for size, sign, style in parts:
        start, end = before * columns // total, (before + size) * columns // total
        bar.append(sign * (end - start), style)
        before += size
    return bar


def _counts_line(progress: Progress) -> Text:
    names = ("done", "failed", "running", "missing")
    counts = ", ".join(f"{getattr(progress, name):,} {name}" for name in names)
    return _line("samples", f"{counts} of {progress.expected:,}")


def _score_lines(progress: Progress) -> list[Text]:
    scores = list(progress.scores.items())[:MAX_SCORES]
    lines = [
        _line("score" if not index else "", f"{name}  ")
        .append(format_score(score), "bold")
        .append(f"  of {score.count:,}", "dim")
        for index, (name, score) in enumerate(scores)
    ]
    if hidden := len(progress.scores) - len(scores):
        lines.append(_line("", f"and {hidden} more"))
    return lines


def _spent_line(progress: Progress) -> Text:
    spent = progress.spent
    tokens = spent.prompt_tokens + spent.completion_tokens
    of_cost = f" of {format_dollars(progress.cost)}" if progress.cost else ""
    of_tokens = f" of {progress.tokens:,}" if progress.tokens else ""
    amounts = f"{tokens:,}{of_tokens} tokens, {count(progress.turns, 'answer')}"
    return _line("spent", f"{format_dollars(spent.cost)}{of_cost}, {amounts}")


def _paragraph(label: str, text: str, style: str) -> Iterator[tuple[str, str, str]]:
    """Yield the lines of a text that says what to do: its end is not cut off by a terminal."""
    width = max(40, min(MAX_LINE_COLUMNS, stdout.width) - LABEL_COLUMNS - 1)
    line = shorten_line(text, MAX_REASON_CHARS)
    # A command between backticks stays on one line: it is there to be copied.
    unbroken = COMMAND.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), line)
    for nth, part in enumerate(textwrap.wrap(unbroken, width, break_on_hyphens=False)):
        yield ("" if nth else label, part.replace("\N{NO-BREAK SPACE}", " "), style)


def _watch_command(progress: Progress) -> str:
    """Return the command that shows the conversation of a running sample; empty without one."""
    if not progress.at_work:
        return ""
    return f"perdure batch watch {progress.name} {shlex.quote(progress.at_work[0])}"


def _format_counts(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count:,}" for name, count in ordered)


def _line(label: str, text: str, style: str = "") -> Text:
    head = (f"  {label:<{LABEL_COLUMNS - 2}}", "dim")
    return Text.assemble(head, (escape_controls(text), style))
