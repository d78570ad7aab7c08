"""The memories of a store, as the settings describe them."""

from perdure.memory.service import MemoryService
from perdure.models.embedding import load_embedder
from perdure.settings.settings import MemorySettings
from perdure.storage.store import Store


def open_memories(settings: MemorySettings, store: Store) -> MemoryService:
    """Open the memories of a store. Raises Invalid for an embedding model that is no code."""
    embedder = load_embedder(settings.embedding_model, settings.embedding_api_base)
    return MemoryService(store, embedder, settings.index)
