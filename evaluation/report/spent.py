"""What a batch took."""

from collections.abc import Callable

from evaluation.report import words
from evaluation.report.page import number, paragraph, section, table
from evaluation.report.page import words as cell
from evaluation.summary import Summary


def spent(summary: Summary) -> str:
    usage, grading, attempts = summary.usage, summary.grading, summary.attempts
    lines = [
        ("Cost of the agent", usage.cost, words.money),
        ("Tokens of prompts", usage.prompt_tokens, words.count),
        ("… of these read from the cache", usage.cached_tokens, words.count),
        ("… of these written to the cache", usage.cache_write_tokens, words.count),
        ("Tokens of answers", usage.completion_tokens, words.count),
        ("… of these for reasoning", usage.reasoning_tokens, words.count),
        ("Time of models", usage.latency, words.duration),
        ("Time from start to end", summary.seconds, words.duration),
        ("Turns", summary.turns, words.count),
        ("Tool calls", summary.tool_calls, words.count),
        ("… of these failed", summary.tool_errors, words.count),
    ]
    if grading.cost or grading.prompt_tokens:
        lines += [
            ("Cost of grading", grading.cost, words.money),
            ("Tokens of grading", grading.prompt_tokens + grading.completion_tokens, words.count),
        ]
    rows = (
        (cell(name), number(said(total)), number(_mean(total, attempts, said)))
        for name, total, said in lines
    )
    note = f"Of all {attempts:,} attempts, also those that failed and were tried again."
    told = table(("", "#In all", "#Mean of an attempt"), rows) if attempts else ""
    return section("spent", "What it took", told, paragraph(note if told else ""))


def _mean(total: float, attempts: int, said: Callable[[float], str]) -> str:
    mean = total / attempts
    return f"{mean:,.1f}" if said is words.count else said(mean)
