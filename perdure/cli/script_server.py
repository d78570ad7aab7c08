"""Model selection of a command, and the HTTP server of a scripted model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from perdure.agent.spec import ModelSpec
from perdure.cli.environment import Environment, open_environment
from perdure.cli.output import note
from perdure.errors import Invalid
from perdure.settings.settings import load_settings
from perdure.testing.script import Script, read_scripts
from perdure.testing.scripted_model import SCRIPTED_PREFIX
from perdure.testing.server import serve_scripts


@asynccontextmanager
async def serve_model(script: Path | None, model: str | None) -> AsyncIterator[ModelSpec]:
    """Yield the named model, or serve `script` as a model meanwhile.

    Raises Invalid where there is no model, and ScriptError.
    """
    if script is not None:
        scripts = read_scripts(script)
        name = _select_script(scripts, script, model)
        async with serve_scripts(scripts) as base_url:
            note(f"The model is scripted: {script}, served at {base_url} while this command runs.")
            yield ModelSpec(name=f"openai/{name}", api_base=base_url)
    elif model is not None:
        yield ModelSpec(name=resolve_script_path(model))
    else:
        raise Invalid(
            "No model is set.",
            "Give --model NAME or set PERDURE_MODEL to one of litellm's names, such as "
            "anthropic/claude-sonnet-4-5, with its key in the environment of the worker; or give "
            "--script FILE for a scripted one.",
        )


@asynccontextmanager
async def open_model_and_environment(
    script: Path | None, model: str | None
) -> AsyncIterator[tuple[ModelSpec, Environment]]:
    """Yield the model (that of the settings by default) and the environment to run in."""
    flags = {"model": model} if script is None else {}
    name = model if script else load_settings(**flags).model
    async with serve_model(script, name) as spec, open_environment(**flags) as environment:
        yield spec, environment


def resolve_script_path(model: str, folder: Path = Path()) -> str:
    """Make the path of a `scripted:` model absolute: the worker has another working directory."""
    if not model.startswith(SCRIPTED_PREFIX):
        return model
    return f"{SCRIPTED_PREFIX}{(folder / model.removeprefix(SCRIPTED_PREFIX)).absolute()}"


def _select_script(scripts: dict[str, Script], path: Path, model: str | None) -> str:
    if model is None and len(scripts) == 1:
        return next(iter(scripts))
    if model not in scripts:
        raise Invalid(
            f"{path} holds the scripts {', '.join(scripts)}.", "Name one of them with --model."
        )
    return model
