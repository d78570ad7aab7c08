"""The settings of a batch in a few lines."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from perdure.evaluation.spec import BatchSpec
from perdure.events.control import LOG_FIELDS
from perdure.exports.report.formatting import count, duration, json_value, money

MAX_SPECIFICATION = 20_000
"""Characters of a specification that a page shows."""

OMITTED = {"agent", "model", "limits", "mcp", *LOG_FIELDS, "tools", "secrets"}
"""Settings of an agent that have a line of their own, or need none."""


def settings_of(spec: BatchSpec) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the settings that a reader of scores asks for."""
    dataset, model, agent = spec.dataset, spec.agent.model, spec.agent
    choice = [f"the first {spec.limit:,}"] if spec.limit else []
    choice += [f"{len(spec.ids):,} chosen by id"] if spec.ids else []
    choice += ["shuffled"] if spec.shuffle else []
    yield "Dataset", ", ".join([dataset.path or dataset.function or "", *choice])
    yield "Model", _changed(model.name, model, {"name"})
    yield "Agent", _changed(agent.agent or "unnamed", agent, OMITTED)
    servers = (f"MCP server {server.name}" for server in agent.mcp)
    yield "Tools", ", ".join([*agent.tools, *servers])
    yield "Prompt", "its own" if agent.system_prompt is not None else "the default one"
    scorers = (
        _changed(
            scorer.score_name if scorer.name is None else f"{scorer.score_name} ({scorer.kind})",
            scorer,
            {"name", "kind"},
        )
        for scorer in spec.scorers
    )
    yield "Scorers", "; ".join(scorers) or "none"
    yield "Epochs", count(spec.epochs)
    yield "Reduced by", ", ".join(spec.reducers)
    yield "Seed", str(spec.seed)
    yield "Retries", f"{spec.retries.times} after {', '.join(spec.retries.on) or 'nothing'}"
    yield "At once", count(spec.concurrency)
    yield "Limits of a sample", _limits(spec.limits) or "none but the agent's own"
    yield "Limits of the agent", _limits(agent.limits)
    yield "Limits of the batch", _limits(spec.batch_limits) or "none"


def specification(spec: BatchSpec) -> str:
    """The whole specification as JSON, cut where it is too long for a page."""
    whole = spec.model_dump_json(indent=2, exclude_defaults=True, exclude={"ids"})
    if len(whole) <= MAX_SPECIFICATION:
        return whole
    return f"{whole[:MAX_SPECIFICATION]}\n… ({len(whole):,} characters in all)"


def _limits(limits: BaseModel) -> str:
    values = limits.model_dump(exclude_none=True).items()
    return ", ".join(f"{name.removeprefix('max_')} {_limit(name, value)}" for name, value in values)


def _limit(name: str, value: Any) -> str:
    forms = {"cost": money, "max_budget": money, "time": duration}
    return value if isinstance(value, str) else forms.get(name, count)(value)


def _changed(name: str, settings: BaseModel, exclude: set[str]) -> str:
    """The name, and each setting that is not the default one."""
    changed = settings.model_dump(mode="json", exclude_defaults=True, exclude=exclude)
    return ", ".join([name, *(f"{key} {json_value(value)}" for key, value in changed.items())])
