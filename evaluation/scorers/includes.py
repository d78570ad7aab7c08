"""The target stands somewhere in the answer."""

from typing import Literal

from evaluation.sample import Sample
from evaluation.score import Score, TextScorer, targets


class Includes(TextScorer):
    """Compares letter by letter, but for case. With `all_of` every target has to be there."""

    kind: Literal["includes"] = "includes"
    ignore_case: bool = True
    all_of: bool = False

    def score(self, sample: Sample, text: str) -> Score:
        """Raises Unscorable."""
        wanted = targets(sample)
        there = [one for one in wanted if self._plain(one) in self._plain(text)]
        right = len(there) == len(wanted) if self.all_of else bool(there)
        return Score(value=right, answer=there[0] if there else None)

    def _plain(self, text: str) -> str:
        return text.casefold() if self.ignore_case else text
