"""How a program finds the store."""

from client.errors import Invalid
from settings.settings import Settings
from storage.open import open_store
from storage.store import Store


def store_of(settings: Settings) -> Store:
    """The store that is set. Raises Invalid where there is none, or no such kind."""
    if settings.store is None:
        raise Invalid("No store is set.", "Set PERDURE_STORE to s3://bucket or file:///folder.")
    try:
        return open_store(settings.store)
    except ValueError as error:
        raise Invalid(str(error), "It is set by PERDURE_STORE or in perdure.toml.") from error
