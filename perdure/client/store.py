"""The store that is configured."""

from collections.abc import Callable

from perdure.errors import Invalid
from perdure.settings.settings import Settings
from perdure.storage.open import open_store
from perdure.storage.store import Store


def open_configured_store(settings: Settings, opener: Callable[[str], Store] = open_store) -> Store:
    """Open the configured store. Raises Invalid if none is set, or one of an unknown kind."""
    if settings.store is None:
        raise Invalid("No store is set.", "Set PERDURE_STORE to s3://bucket or file:///folder.")
    try:
        return opener(settings.store)
    except ValueError as error:
        raise Invalid(str(error), "It is set by PERDURE_STORE or in perdure.toml.") from error
