"""Reading a batch from a file or a Python reference."""

import runpy
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def read_batch(source: str) -> BatchSpec:
    """Read the batch in a .toml or .py file, or behind `module:attribute`.

    The path of a dataset in a file is relative to that file. Raises InvalidBatch.
    """
    path = Path(source)
    try:
        match path.suffix:
            case ".toml":
                return _resolve_dataset(path, parse_batch_toml(path.read_text(encoding="utf-8")))
            case ".py":
                return _resolve_dataset(path, _to_batch(_run_file(path)))
            case _ if REFERENCE_PATTERN.fullmatch(source):
                return _to_batch(import_reference(source))
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


def _to_batch(value: Any) -> BatchSpec:
    """Convert a BatchSpec, a table of its keys, or a function that returns one of them."""
    result = _call(value) if callable(value) else value
    if isinstance(result, BatchSpec):
        return check_scorers(result)
    if isinstance(result, dict):
        return parse_batch(result)
    raise InvalidBatch(f"It gives a {type(result).__name__}, and it must be a BatchSpec.")


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
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidBatch(f"It is no TOML: {error or 'nested too deeply'}.") from error
    return parse_batch(table)
