"""What stands behind `module:attribute`."""

import importlib
from typing import Any

from storage.datasets.rows import BadDataset


def found(reference: str) -> Any:
    """Import the module and take its attribute. Raises BadDataset."""
    name, _, attribute = reference.partition(":")
    try:
        value: Any = importlib.import_module(name)
        for part in attribute.split("."):
            value = getattr(value, part)
    except (Exception, SystemExit) as error:
        # Another's code may raise anything; whatever it is, the operator is told in one sentence.
        raise BadDataset(
            f"{reference!r} cannot be imported ({type(error).__name__}: {error}): write it as "
            "module:attribute."
        ) from error
    return value
