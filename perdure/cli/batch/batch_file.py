"""Batches from a file or a module, with the changes of the command line."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from perdure.agent.spec import ModelSpec
from perdure.cli.script_server import resolve_script_path
from perdure.datasets.batch import read_batch
from perdure.errors import Invalid
from perdure.evaluation.spec import (
    REFERENCE_PATTERN,
    BatchSpec,
    InvalidBatch,
    check_scorers,
    split_by_model,
)
from perdure.events.validation_errors import describe_errors
from perdure.references import add_user_folder
from perdure.testing.scripted_model import SCRIPTED_PREFIX

FILE_OPTION = "file"
"""The batch option that records the file it came from."""


@dataclass(frozen=True)
class LoadedBatches:
    """The batches of a file, one for each model, and the options recorded with them."""

    batches: tuple[BatchSpec, ...]
    options: dict[str, JsonValue]


def load_batches(source: str, changes: dict[str, Any]) -> LoadedBatches:
    """Load the batches of a file, and make its folder importable. Raises Invalid."""
    file = Path(source).absolute()
    folder = Path.cwd() if _is_reference(source) else file.parent
    make_importable(folder)
    try:
        batch = read_batch(source)
        batch = check_scorers(_apply_changes(batch, changes)) if changes else batch
    except InvalidBatch as error:
        raise Invalid(str(error)) from error
    batches = tuple(_resolve_script(folder, single) for single in split_by_model(batch))
    return LoadedBatches(batches, {FILE_OPTION: source if _is_reference(source) else str(file)})


def make_importable(folder: Path) -> None:
    """Have references find modules in the folder, here and in a worker that this process starts."""
    add_user_folder(folder)
    os.environ["PERDURE_CODE"] = str(folder)


def _is_reference(source: str) -> bool:
    return REFERENCE_PATTERN.fullmatch(source) is not None and Path(source).suffix not in (
        ".toml",
        ".py",
    )


def _apply_changes(batch: BatchSpec, changes: dict[str, Any]) -> BatchSpec:
    """Apply the changes of the command line. Raises InvalidBatch."""
    changed = dict(changes)
    if names := changed.get("models"):
        models = {name.name: name for name in (batch.agent.model, *batch.models)}
        changed["models"] = [
            models.get(name) or ModelSpec(name=resolve_script_path(name)) for name in names
        ]
    try:
        return BatchSpec.model_validate({**dict(batch), **changed})
    except ValidationError as error:
        raise InvalidBatch(f"The batch cannot be run: {describe_errors(error)}.") from error


def _resolve_script(folder: Path, batch: BatchSpec) -> BatchSpec:
    """Make a script's path, which is relative to the batch file, absolute."""
    model = batch.agent.model
    if not model.name.startswith(SCRIPTED_PREFIX):
        return batch
    name = f"{SCRIPTED_PREFIX}{folder / model.name.removeprefix(SCRIPTED_PREFIX)}"
    agent = batch.agent.model_copy(update={"model": model.model_copy(update={"name": name})})
    return batch.model_copy(update={"agent": agent})
