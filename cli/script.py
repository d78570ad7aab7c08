"""A scripted model for one run, served over HTTP by this command."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.spec import ModelSpec
from cli.output import note
from cli.stack import Place, place_to_run
from client.errors import Invalid
from models.script import Script, read_scripts
from models.scripted import PREFIX
from models.serve import serve
from settings.settings import load


@asynccontextmanager
async def model_of(script: Path | None, model: str | None) -> AsyncIterator[ModelSpec]:
    """The model that was asked for; one that plays `script` is there while this is used.

    Raises Invalid where there is none, and ScriptError.
    """
    if script is not None:
        scripts = read_scripts(script)
        name = _chosen(scripts, script, model)
        async with serve(scripts) as base_url:
            note(f"The model is scripted: {script}, served at {base_url} while this command runs.")
            yield ModelSpec(name=f"openai/{name}", api_base=base_url)
    elif model is not None:
        yield ModelSpec(name=findable(model))
    else:
        raise Invalid(
            "No model is set.",
            "Give --model NAME or set PERDURE_MODEL to one of litellm's names, such as "
            "anthropic/claude-sonnet-4-5, with its key in the environment of the worker; or give "
            "--script FILE for a scripted one.",
        )


@asynccontextmanager
async def model_and_place(
    script: Path | None, model: str | None
) -> AsyncIterator[tuple[ModelSpec, Place]]:
    """As `model_of`, the model of the settings where none is named, and where it is to run."""
    flags = {"model": model} if script is None else {}
    named = model if script else load(**flags).model
    async with model_of(script, named) as spec, place_to_run(**flags) as place:
        yield spec, place


def findable(model: str) -> str:
    """A script's file by its whole path: the worker looks from elsewhere."""
    if not model.startswith(PREFIX):
        return model
    return f"{PREFIX}{Path(model.removeprefix(PREFIX)).absolute()}"


def _chosen(scripts: dict[str, Script], path: Path, model: str | None) -> str:
    if model is None and len(scripts) == 1:
        return next(iter(scripts))
    if model not in scripts:
        raise Invalid(
            f"{path} holds the scripts {', '.join(scripts)}.", "Name one of them with --model."
        )
    return model
