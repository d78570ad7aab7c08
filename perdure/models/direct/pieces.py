"""The JSON of messages, kept for the next requests: a conversation only grows."""

from collections.abc import Hashable, Mapping
from typing import Any, Generic, Protocol, TypeVar

MAX_KEPT_BYTES = 16 * 1024 * 1024
"""Bytes of JSON that are kept for the next requests."""


class Piece(Protocol):
    """The JSON of one message."""

    @property
    def message(self) -> Mapping[str, Any]:
        """The message itself: as long as it is held, no other one has its identity."""

    @property
    def size(self) -> int:
        """Bytes of JSON."""


PieceT = TypeVar("PieceT", bound=Piece)


class KeptPieces(Generic[PieceT]):
    """Pieces by the identity of their messages, up to a size; then all of them are dropped."""

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self.by_form: dict[Hashable, dict[int, PieceT]] = {}
        self._max_bytes = max_bytes
        self._size = 0

    def of_form(self, form: Hashable) -> dict[int, PieceT]:
        """Return the pieces of one form; a message may be written in several."""
        return self.by_form.setdefault(form, {})

    def add(self, pieces: dict[int, PieceT], piece: PieceT) -> PieceT:
        """Keep a piece among those of its form, and return it."""
        self._size += piece.size
        if self._size > self._max_bytes:
            self._size = piece.size
            for others in self.by_form.values():
                others.clear()
        pieces[id(piece.message)] = piece
        return piece
