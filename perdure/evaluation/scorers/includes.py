"""A scorer for answers that contain the target."""

from typing import Literal

from perdure.evaluation.sample import Sample
from perdure.evaluation.score import Score, TextScorer, require_targets


class Includes(TextScorer):
    """A scorer that searches the answer for a target; with `all_of`, for every target."""

    kind: Literal["includes"] = "includes"
    ignore_case: bool = True
    all_of: bool = False

    def score(self, sample: Sample, text: str) -> Score:
        targets = require_targets(sample)
        matches = [target for target in targets if self._casefold(target) in self._casefold(text)]
        correct = len(matches) == len(targets) if self.all_of else bool(matches)
        return Score(value=correct, answer=matches[0] if matches else None)

    def _casefold(self, text: str) -> str:
        return text.casefold() if self.ignore_case else text
