"""A batch from where somebody has written it down."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluation.spec import REFERENCE, BadBatch, BatchSpec, batch_of, checked
from evaluation.toml import batch_of_toml
from storage.datasets.references import found
from storage.datasets.rows import BadDataset

ATTRIBUTE = "batch"
"""What a file of Python calls its batch."""


def read_batch(source: str) -> BatchSpec:
    """The batch in a .toml or .py file, or behind `module:attribute`.

    A dataset that a file names is looked for from beside that file. Raises BadBatch.
    """
    path = Path(source)
    try:
        match path.suffix:
            case ".toml":
                return _beside(path, batch_of_toml(path.read_text(encoding="utf-8")))
            case ".py":
                return _beside(path, _batch(_attribute(path)))
            case _ if REFERENCE.fullmatch(source):
                return _batch(found(source))
    except OSError as error:
        raise BadBatch(f"{source} cannot be read ({error.strerror or error}).") from error
    except BadDataset as error:
        raise BadBatch(str(error)) from error
    except (BadBatch, UnicodeDecodeError) as error:
        raise BadBatch(f"{source}: {error}") from error
    raise BadBatch(f"{source!r} is no batch: name a .toml or .py file, or module:attribute.")


def _attribute(path: Path) -> Any:
    path.open().close()  # what its own code cannot open is another matter
    attributes = _run(lambda: runpy.run_path(str(path)))
    if ATTRIBUTE not in attributes:
        raise BadBatch(f"It has no `{ATTRIBUTE}`.")
    return attributes[ATTRIBUTE]


def _batch(value: Any) -> BatchSpec:
    """A BatchSpec, a table of its keys, or a function that gives one of them."""
    given = _run(value) if callable(value) else value
    if isinstance(given, BatchSpec):
        return checked(given)
    if isinstance(given, dict):
        return batch_of(given)
    raise BadBatch(f"It gives a {type(given).__name__}, and it must be a BatchSpec.")


def _run(code: Callable[[], Any]) -> Any:
    """Another's code may raise anything; whatever it is, its author is told in one sentence."""
    try:
        return code()
    except BadBatch:
        raise
    except (Exception, SystemExit) as error:
        raise BadBatch(f"It raised {type(error).__name__}: {error}.") from error


def _beside(path: Path, batch: BatchSpec) -> BatchSpec:
    dataset = batch.dataset
    if dataset.path is None:
        return batch
    whole = str((path.parent / dataset.path).absolute())
    found = dataset.model_copy(update={"path": whole})
    return batch.model_copy(update={"dataset": found})
