"""What a batch was asked to do, in short."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from evaluation.report import words
from evaluation.report.page import facts, folded, section, text
from evaluation.scorers.scorers import Kinds
from evaluation.spec import BatchSpec

WHOLE = 20_000
"""Characters of a spec that are shown as they are."""

LONGEST = 300


def setup(spec: BatchSpec) -> str:
    told = chain(_what(spec), _how(spec), _limits(spec))
    short = facts((name, words.shortened(one, LONGEST)) for name, one in told)
    whole = spec.model_dump_json(indent=2, exclude_defaults=True, exclude={"ids"})
    if len(whole) > WHOLE:
        whole = f"{whole[:WHOLE]}\n… ({len(whole):,} characters in all)"
    return section(
        "setup", "Set-up", short, folded("The whole specification", f"<pre>{text(whole)}</pre>")
    )


def _what(spec: BatchSpec) -> Iterator[tuple[str, str]]:
    dataset, model, agent = spec.dataset, spec.agent.model, spec.agent
    chosen = [f"the first {spec.limit:,}"] if spec.limit else []
    chosen += [f"{len(spec.ids):,} chosen by id"] if spec.ids else []
    chosen += ["shuffled"] if spec.shuffle else []
    yield "Dataset", ", ".join([dataset.path or dataset.function or "", *chosen])
    yield "Model", _settings(model.name, model, {"name"})
    yield "Agent", _settings(agent.agent or "unnamed", agent, {"agent", "model", *ELSEWHERE})
    yield "Tools", ", ".join([*agent.tools, *(f"MCP server {one.name}" for one in agent.mcp)])
    yield "Prompt", "its own" if agent.system_prompt is not None else "the default one"


def _how(spec: BatchSpec) -> Iterator[tuple[str, str]]:
    yield "Scorers", "; ".join(map(_scorer, spec.scorers)) or "none"
    yield "Epochs", words.count(spec.epochs)
    yield "Reduced by", ", ".join(spec.reducers)
    yield "Seed", str(spec.seed)
    yield "Retries", f"{spec.retries.times} after {', '.join(spec.retries.on) or 'nothing'}"
    yield "At once", words.count(spec.concurrency)


def _limits(spec: BatchSpec) -> Iterator[tuple[str, str]]:
    yield "Limits of a sample", _limited(spec.limits) or "none but the agent's own"
    yield "Limits of the agent", _limited(spec.agent.limits)
    yield "Limits of the batch", _limited(spec.batch_limits) or "none"


def _limited(limits: Any) -> str:
    """Each limit that there is, with its unit."""
    found = {name: one for name, one in limits.model_dump().items() if one is not None}
    return ", ".join(
        f"{name.removeprefix('max_')} {_measured(name, found[name])}" for name in found
    )


def _measured(name: str, limit: Any) -> str:
    if name in ("cost", "max_budget"):
        return words.money(limit)
    if name == "time":
        return words.duration(limit)
    return limit if isinstance(limit, str) else words.count(limit)


def _scorer(scorer: Kinds) -> str:
    return _settings(
        scorer.called if scorer.name is None else f"{scorer.called} ({scorer.kind})",
        scorer,
        {"name", "kind"},
    )


def _settings(name: str, given: Any, others: set[str]) -> str:
    """The name, and what else was set that is not as it is by default."""
    found = given.model_dump(mode="json", exclude_defaults=True, exclude=others)
    return ", ".join([name, *(f"{key} {words.value(one)}" for key, one in found.items())])


ELSEWHERE = ("limits", "mcp", "system_prompt", "tools", "secrets")
"""Settings of an agent that have a line of their own, or need none."""
