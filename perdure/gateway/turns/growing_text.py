"""The text of one item while it grows, in pieces that do not depend on how it came."""

import re
from dataclasses import dataclass

from perdure.api.frames import DeltaFrame
from perdure.gateway.turns.parts import Text

PIECE = re.compile(r".{4,63}?\s|.{64}", re.DOTALL)
"""A piece: it ends with the first white space behind some letters, or after so many.

No letter that comes later changes where it ends, so a text is cut in one way only.
"""


@dataclass
class GrowingText:
    """The text of an item, of which what was `sent` cannot be taken back."""

    item_id: str
    text: str = ""
    sent: str = ""
    attempt: int = 0
    is_whole: bool = True
    """Whether nothing is missing in front of the text."""

    def add(self, delta: DeltaFrame) -> None:
        """Add what the model has said in addition; a higher attempt begins anew."""
        if delta.attempt > self.attempt:
            self.text, self.attempt, self.is_whole = "", delta.attempt, True
        self.is_whole = self.is_whole and delta.offset <= len(self.text)
        self.text = self.text[: delta.offset] + delta.text

    def take_pieces(self) -> list[Text]:
        """Return the pieces that are complete and were not sent yet."""
        if not self.is_whole or not self.text.startswith(self.sent):
            return []
        pieces = []
        while (match := PIECE.match(self.text, len(self.sent))) is not None:
            self.sent += match[0]
            pieces.append(Text(self.item_id, match[0]))
        return pieces

    def end(self, text: str, *, final: bool = False) -> list[Text]:
        """Return the pieces that are still to be sent of the text as the log has it."""
        self.text, self.is_whole = text, True
        is_same = text.startswith(self.sent)
        pieces = self.take_pieces()
        rest = text[len(self.sent) :] if is_same else f"\n{text}"
        return [*pieces, Text(self.item_id, rest, last=True, final=final, whole=text)]
