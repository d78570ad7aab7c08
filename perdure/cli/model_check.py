"""Checks of an agent's models and its budget, before a conversation is begun."""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from perdure.agent.spec import Agent, ModelSpec
from perdure.cli.output import note
from perdure.embedded.discovery import find_stack
from perdure.embedded.record import StackInfo
from perdure.errors import Invalid
from perdure.models.budget import check_budget, list_models
from perdure.models.check import check_name
from perdure.models.keys import find_missing_key
from perdure.settings.settings import Settings
from perdure.testing.scripted_model import SCRIPTED_PREFIX, load_script


async def check_agent_models(agent: Agent, settings: Settings) -> None:
    """Check all models of an agent, and its budget. Raises Invalid, and ScriptError."""
    await check_models(list_models(agent), settings)
    check_budget(agent)


async def check_models(models: Iterable[ModelSpec], settings: Settings) -> None:
    """Check the names of models, and the keys of the worker; note what is not sure.

    The keys of a worker on another machine are not known. Raises Invalid, and ScriptError.
    """
    is_near = settings.store is None and settings.gateway is None
    info = await find_stack(settings.data) if is_near else None
    variables = info.worker_variables if info is not None else sorted(os.environ)
    for model in models:
        _check_script(model, is_near)
        if remark := check_name(model, variables or ()):
            note(remark, "yellow")
        if is_near and variables is not None:
            _check_key(model, variables, info)


def _check_script(model: ModelSpec, is_near: bool) -> None:
    """Check the file of a scripted model; one that is not here may be where the worker runs."""
    path, _, _ = model.name.removeprefix(SCRIPTED_PREFIX).partition("#")
    if model.name.startswith(SCRIPTED_PREFIX) and (is_near or Path(path).exists()):
        load_script(model.name)


def _check_key(model: ModelSpec, variables: Collection[str], info: StackInfo | None) -> None:
    variable = find_missing_key(model, variables)
    if variable is None:
        return
    if info is None:
        message = f"{model.name} needs a key, and {variable} is not set."
        raise Invalid(message, f"Set it first: export {variable}=...")
    is_set = " It is set here, but the worker has the variables of `perdure dev`."
    raise Invalid(
        f"{model.name} needs a key, and `perdure dev` was started without {variable}."
        f"{is_set if os.environ.get(variable) else ''}",
        f"End `perdure dev` with ^C, and start it again where {variable} is set.",
    )
