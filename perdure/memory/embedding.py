"""The interface of embedding models, which make vectors of texts."""

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """An embedding model. Vectors of models with the same `name` are compared with each other."""

    @property
    def name(self) -> str: ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text. Raises ClientError with a sentence."""
