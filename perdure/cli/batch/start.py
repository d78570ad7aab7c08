"""Start of batches from a file or a module; they are then followed unless detached."""

import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError

from perdure.agent.layers import Layer
from perdure.agent.resolve import resolve_agent
from perdure.agent.spec import Agent, ModelSpec
from perdure.cli.agent_options import apply_agent_options
from perdure.cli.agent_sources import open_agent_sources
from perdure.cli.batch.control import connect_batches
from perdure.cli.batch.follow import attach, note_start
from perdure.cli.declarations.agent_fields import AgentFieldOptions
from perdure.cli.declarations.batches import Rescore, Retry, Run
from perdure.cli.environment import Environment, open_environment
from perdure.cli.model_check import check_agent_models
from perdure.cli.output import show_result
from perdure.cli.script_server import resolve_script_path
from perdure.client.batch.protocol import BatchClient, BatchControl
from perdure.datasets.batch import Overrides, read_batch
from perdure.errors import Invalid
from perdure.evaluation.messages import BatchMode
from perdure.evaluation.spec import (
    REFERENCE_PATTERN,
    BatchSpec,
    InvalidBatch,
    agent_with_limits,
    check_scorers,
    split_by_model,
)
from perdure.events.validation_errors import describe_errors
from perdure.models.budget import check_prices, list_models
from perdure.operations.error_reports import EXIT_OK
from perdure.references import add_user_folder
from perdure.settings.settings import load_settings

StartOptions: TypeAlias = Run | Retry | Rescore

StartBatches: TypeAlias = Callable[[BatchClient], Awaitable[list[BatchControl]]]


async def run(options: Run) -> int:
    mode = options.mode
    names = ("name", "models", "concurrency", "limit", "ids", "epochs")
    changes = {name: value for name in names if (value := getattr(options, name))}
    changes["arguments"] = parse_pairs("-T", options.arguments)
    changes["model_fields"] = parse_pairs("-M", options.model_fields)
    named = await _find_named(options)
    batches = load_batches(options.file, changes, options, named)
    if mode != "rescore":
        for batch in batches:
            await _check_models(batch)
    return await _run(batches, options.file, mode, options)


async def _check_models(batch: BatchSpec) -> None:
    """Check the models of a batch, and its limits in dollars. Raises Invalid."""
    agent = agent_with_limits(batch)
    await check_agent_models(agent, load_settings())
    if batch.batch_limits.cost is not None:
        graders = [grader for scorer in batch.scorers if (grader := getattr(scorer, "model", None))]
        check_prices([*list_models(agent), *graders], agent.model)


async def retry(options: Retry) -> int:
    return await _run_again("failed", options)


async def rescore(options: Rescore) -> int:
    """Score a batch again, as it was run last or by a file."""
    name, file = options.name, options.file
    if file is None:
        return await _run_again("rescore", options)
    batches = {batch.name: batch for batch in load_batches(file, {})}
    if name not in batches:
        message = f"{file} is no batch {name}: it is {', '.join(batches)}."
        raise Invalid(message, f"Write name = {name!r} there.")
    return await _run([batches[name]], file, "rescore", options)


async def _run(specs: list[BatchSpec], file: str, mode: BatchMode, options: StartOptions) -> int:

    async def start(batches: BatchClient) -> list[BatchControl]:
        return [await batches.run(spec, mode, {"file": resolve_source(file)}) for spec in specs]

    return await _start_and_follow(start, options)


async def _run_again(mode: BatchMode, options: Retry | Rescore) -> int:
    """Run a batch as it was run last."""

    async def start(batches: BatchClient) -> list[BatchControl]:
        return [await batches.rerun(options.name, mode)]

    make_importable(Path.cwd())
    return await _start_and_follow(start, options)


async def _start_and_follow(start: StartBatches, options: StartOptions) -> int:
    if not options.detach:
        async with open_environment() as environment:
            return await environment.run_with_stack(_follow(start, environment, options))
    for batch in await start(await connect_batches()):
        fields = {"batch": batch.name, "attached": batch.attached}
        remark = "It runs already." if batch.attached else ""
        show_result(fields, options.output, batch.name, remark=remark)
    return EXIT_OK


async def _follow(start: StartBatches, environment: Environment, options: StartOptions) -> int:
    batches = await start(await connect_batches(environment.settings))
    for batch in batches:
        note_start(batch, environment, (await batch.load_record()).expected_attempts)
    return await attach(batches, options.output, environment)


def load_batches(
    source: str,
    changes: dict[str, Any],
    options: AgentFieldOptions | None = None,
    named: Agent | None = None,
) -> list[BatchSpec]:
    """Load the batches of a file, one for each model, and make its folder importable.

    `options` are stronger than the file's agent, and a `named` agent is weaker. Raises Invalid.
    """
    folder = Path.cwd() if _is_reference(source) else Path(source).absolute().parent
    make_importable(folder)
    try:
        models = tuple(changes.get("models", ())) or ((named.model.name,) if named else ())
        batch = read_batch(source, Overrides(changes.pop("arguments", {}), models))
        batch = check_scorers(_apply_changes(batch, changes)) if changes else batch
    except InvalidBatch as error:
        raise Invalid(str(error)) from error
    singles = [_resolve_script(folder, single) for single in split_by_model(batch)]
    if options is None:
        return singles
    is_chosen = bool(changes.get("models"))
    return [_apply_options(single, options, is_chosen, named) for single in singles]


def _apply_options(
    batch: BatchSpec, options: AgentFieldOptions, is_chosen: bool, named: Agent | None
) -> BatchSpec:
    """Change the agent of a batch, whose model was chosen on the command line too or was not."""
    model = batch.agent.model.name if is_chosen else None
    agent = apply_agent_options(options, batch.agent, model, named)
    return batch.model_copy(update={"agent": agent})


async def _find_named(options: Run) -> Agent | None:
    """Find the named agent of the options. Raises Invalid."""
    if options.agent is None:
        return None
    arguments = [Layer("options", {"model": name}) for name in (options.models or [])[:1]]
    async with open_agent_sources() as sources:
        offer = await sources.load_offer(options.agent, arguments)
    return resolve_agent(options.agent, arguments, offer).agent


def make_importable(folder: Path) -> None:
    """Have references find modules in the folder, here and in a worker that this process starts."""
    add_user_folder(folder)
    os.environ["PERDURE_CODE"] = str(folder)


def resolve_source(source: str) -> str:
    """Make the path of a batch file absolute."""
    return source if _is_reference(source) else str(Path(source).absolute())


def _is_reference(source: str) -> bool:
    is_file = Path(source).suffix in (".toml", ".py")
    return not is_file and REFERENCE_PATTERN.fullmatch(source) is not None


def _apply_changes(batch: BatchSpec, changes: dict[str, Any]) -> BatchSpec:
    """Apply the changes of the command line. Raises InvalidBatch."""
    changed = dict(changes)
    fields = changed.pop("model_fields", {})
    models = list(batch.models)
    if names := changed.get("models"):
        known = {model.name: model for model in (batch.agent.model, *batch.models)}
        models = [known.get(name) or ModelSpec(name=resolve_script_path(name)) for name in names]
    if names or fields:
        changed["models"] = [_change_model(m, fields) for m in models or [batch.agent.model]]
    try:
        return BatchSpec.model_validate({**dict(batch), **changed})
    except ValidationError as error:
        raise InvalidBatch(f"The batch cannot be run: {describe_errors(error)}.") from error


def _change_model(model: ModelSpec, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Change fields of a model. Raises InvalidBatch for a field that no model has."""
    if unknown := sorted(fields.keys() - ModelSpec.model_fields.keys()):
        names = ", ".join(ModelSpec.model_fields)
        raise InvalidBatch(f"-M {unknown[0]}: a model has no such field. It has {names}.")
    return {**model.model_dump(), **fields}


def parse_pairs(flag: str, pairs: Sequence[str] | None) -> dict[str, Any]:
    """Parse KEY=VALUE, whose value is JSON or else a text. Raises Invalid without a `=`."""
    parsed: dict[str, Any] = {}
    for pair in pairs or ():
        key, separator, text = pair.partition("=")
        if not separator or not key.isidentifier():
            raise Invalid(f"{flag} {pair!r} is not KEY=VALUE.", f"Write {flag} level=3.")
        try:
            parsed[key] = json.loads(text)
        except ValueError:
            parsed[key] = text
    return parsed


def _resolve_script(folder: Path, batch: BatchSpec) -> BatchSpec:
    """Make a script's path, which is relative to the batch file, absolute."""
    model = batch.agent.model
    name = resolve_script_path(model.name, folder)
    agent = batch.agent.model_copy(update={"model": model.model_copy(update={"name": name})})
    return batch.model_copy(update={"agent": agent})
