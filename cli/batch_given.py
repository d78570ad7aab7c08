"""The batch that a command is given: a file, and what the command line changes about it."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import JsonValue, ValidationError

from agent.spec import ModelSpec
from cli.output import Format
from cli.script import findable
from client.errors import Invalid
from evaluation.faults import faults
from evaluation.spec import REFERENCE, BadBatch, BatchSpec, checked, runs
from models.scripted import PREFIX
from storage.datasets.batch import read_batch

Name = Annotated[str, typer.Argument(metavar="NAME", help="The batch's name.")]

BatchFile = Annotated[
    str, typer.Argument(metavar="FILE", help="A .toml or .py file, or module:attribute.")
]

BatchOutput = Annotated[
    Format,
    typer.Option("-o", "--output", "--format", help="How to print results.", metavar="FORMAT"),
]

Detach = Annotated[bool, typer.Option("--detach", help="Start it, and do not wait.")]

FILE = "file"
"""The option of a batch that says where it was written down."""


@dataclass(frozen=True)
class Given:
    """The batches that a file asks for, one for each model, and what is kept of where from."""

    batches: tuple[BatchSpec, ...]
    options: dict[str, JsonValue]


def given(source: str, changes: dict[str, Any]) -> Given:
    """What stands in the file, changed. Its folder can be imported from. Raises Invalid."""
    file = Path(source).absolute()
    folder = Path.cwd() if _is_reference(source) else file.parent
    importable(folder)
    try:
        batch = read_batch(source)
        batch = checked(_changed(batch, changes)) if changes else batch
    except BadBatch as error:
        raise Invalid(str(error)) from error
    batches = tuple(_beside(folder, one) for one in runs(batch))
    return Given(batches, {FILE: source if _is_reference(source) else str(file)})


def importable(folder: Path) -> None:
    """Also for a worker that this command starts."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    known = os.environ.get("PYTHONPATH", "")
    if str(folder) not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), known)))


def _is_reference(source: str) -> bool:
    return REFERENCE.fullmatch(source) is not None and Path(source).suffix not in (".toml", ".py")


def _changed(batch: BatchSpec, changes: dict[str, Any]) -> BatchSpec:
    """Raises BadBatch."""
    changed = dict(changes)
    if names := changed.get("models"):
        known = {one.name: one for one in (batch.agent.model, *batch.models)}
        changed["models"] = [known.get(one) or ModelSpec(name=findable(one)) for one in names]
    try:
        return BatchSpec.model_validate({**dict(batch), **changed})
    except ValidationError as error:
        raise BadBatch(f"The batch cannot be run: {faults(error)}.") from error


def _beside(folder: Path, batch: BatchSpec) -> BatchSpec:
    """A script for its model is looked for from beside the file: a worker looks from elsewhere."""
    model = batch.agent.model
    if not model.name.startswith(PREFIX):
        return batch
    whole = f"{PREFIX}{folder / model.name.removeprefix(PREFIX)}"
    agent = batch.agent.model_copy(update={"model": model.model_copy(update={"name": whole})})
    return batch.model_copy(update={"agent": agent})
