"""An embedding model that counts letters: texts of the same letters are near each other."""

from collections.abc import Sequence


class LetterEmbedder:
    """An embedding model by the name `name`, which counts its requests, and fails if it is told."""

    def __init__(self, name: str = "letters", size: int = 26) -> None:
        self.name = name
        self.size = size
        self.texts: list[str] = []
        self.error: Exception | None = None

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self.error is not None:
            raise self.error
        self.texts += texts
        return [self._count(text) for text in texts]

    def _count(self, text: str) -> list[float]:
        numbers = [0.001] * self.size
        for letter in text.lower():
            if "a" <= letter <= "z":
                numbers[(ord(letter) - ord("a")) % self.size] += 1
        return numbers
