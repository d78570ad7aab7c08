"""The store that is configured."""

from perdure.errors import Invalid
from perdure.settings.settings import Settings
from perdure.storage.open import open_store
from perdure.storage.store import Store


def open_configured_store(settings: Settings) -> Store:
    """Open the configured store. Raises Invalid if none is set, or one of an unknown kind."""
    if settings.store is None:
        raise Invalid("No store is set.", "Set PERDURE_STORE to s3://bucket or file:///folder.")
    try:
        return open_store(settings.store)
    except ValueError as error:
        raise Invalid(str(error), "It is set by PERDURE_STORE or in perdure.toml.") from error
