"""A batch as a person writes it down."""

import tomllib

from evaluation.spec import BadBatch, BatchSpec, batch_of


def batch_of_toml(text: str) -> BatchSpec:
    """Raises BadBatch."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadBatch(f"It is no TOML: {error or 'nested too deeply'}.") from error
    return batch_of(table)
