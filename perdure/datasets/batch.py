"""Reading a batch from a file or a Python reference."""

import runpy
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from perdure.evaluation.spec import (
    REFERENCE_PATTERN,
    BatchSpec,
    InvalidBatch,
    check_scorers,
    parse_batch,
)
from perdure.references import BadReference, import_reference

BATCH_ATTRIBUTE = "batch"
"""Name of the batch in a Python file."""


class Overrides(NamedTuple):
    """Additions of the command line to a batch before it is parsed.

    `arguments` are for the function that returns the batch, or else for the dataset's. `models` are
    for a batch that names no model itself.
    """

    arguments: Mapping[str, Any] = MappingProxyType({})
    models: Sequence[str] = ()


def read_batch(source: str, overrides: Overrides = Overrides()) -> BatchSpec:  # noqa: B008 - frozen
    """Read the batch in a .toml or .py file, or behind `module:attribute`.

    The path of a dataset in a file is relative to that file. Raises InvalidBatch.
    """
    path = Path(source)
    try:
        match path.suffix:
            case ".toml":
                table = parse_toml(path.read_text(encoding="utf-8"))
                return _resolve_dataset(path, _to_batch(table, overrides))
            case ".py":
                return _resolve_dataset(path, _to_batch(_run_file(path), overrides))
            case _ if REFERENCE_PATTERN.fullmatch(source):
                return _to_batch(import_reference(source), overrides)
    except OSError as error:
        raise InvalidBatch(f"{source} cannot be read ({error.strerror or error}).") from error
    except BadReference as error:
        raise InvalidBatch(f"{source!r}: {error}.") from error
    except (InvalidBatch, UnicodeDecodeError) as error:
        raise InvalidBatch(f"{source}: {error}") from error
    raise InvalidBatch(f"{source!r} is no batch: name a .toml or .py file, or module:attribute.")


def _run_file(path: Path) -> Any:
    path.open().close()  # raises OSError for this file alone, not for files that it opens
    attributes = _call(lambda: runpy.run_path(str(path)))
    if BATCH_ATTRIBUTE not in attributes:
        raise InvalidBatch(f"It has no `{BATCH_ATTRIBUTE}`.")
    return attributes[BATCH_ATTRIBUTE]


def _to_batch(value: Any, overrides: Overrides) -> BatchSpec:
    """Convert a BatchSpec, a table of its keys, or a function that returns one of them."""
    arguments = overrides.arguments
    if callable(value):
        value, arguments = _call(partial(value, **arguments)), {}
    if isinstance(value, BatchSpec):
        return check_scorers(_add_arguments(value, arguments))
    if isinstance(value, dict):
        batch = parse_batch(_add_models(value, overrides.models))
        return _add_arguments(batch, arguments)
    raise InvalidBatch(f"It gives a {type(value).__name__}, and it must be a BatchSpec.")


def _add_models(table: dict[str, Any], models: Sequence[str]) -> dict[str, Any]:
    """Add the models of the command line to a batch that has none."""
    agent = table.get("agent")
    has_model = not {"model", "models"}.isdisjoint(table)
    if has_model or not models or (isinstance(agent, dict) and "model" in agent):
        return table
    return {**table, "models": list(models)}


def _add_arguments(batch: BatchSpec, arguments: Mapping[str, Any]) -> BatchSpec:
    """Add arguments for the dataset's function. Raises InvalidBatch if it is a file."""
    if not arguments:
        return batch
    dataset = batch.dataset
    if dataset.function is None:
        raise InvalidBatch("Neither the batch nor its dataset is a function, which -T is for.")
    changed = dataset.model_copy(update={"arguments": {**dataset.arguments, **arguments}})
    return batch.model_copy(update={"dataset": changed})


def _call(code: Callable[[], Any]) -> Any:
    """Call somebody else's code, turning any exception into one sentence for its author."""
    try:
        return code()
    except InvalidBatch:
        raise
    except (Exception, SystemExit) as error:
        raise InvalidBatch(f"It raised {type(error).__name__}: {error}.") from error


def _resolve_dataset(path: Path, batch: BatchSpec) -> BatchSpec:
    if batch.dataset.path is None:
        return batch
    absolute = str((path.parent / batch.dataset.path).absolute())
    dataset = batch.dataset.model_copy(update={"path": absolute})
    return batch.model_copy(update={"dataset": dataset})


def parse_batch_toml(text: str) -> BatchSpec:
    """Parse a batch spec. Raises InvalidBatch if it is invalid."""
    return parse_batch(parse_toml(text))


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a table. Raises InvalidBatch if it is no TOML."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidBatch(f"It is no TOML: {error or 'nested too deeply'}.") from error
