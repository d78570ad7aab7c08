"""A scorer by a command in the sample's workspace; an activity runs the command."""

import json
from typing import Any, ClassVar, Literal

from pydantic import Field

from perdure.agent.policies import Seconds
from perdure.agent.spec import ModelSpec
from perdure.evaluation.score import Score, Scorer, ScoringError, parse_score

NOT_RUN_CODES = {126: "cannot be executed", 127: "is not there"}
"""A shell's exit codes for a command that did not run (POSIX.1-2017, 2.8.2)."""

MAX_EXPLANATION_CHARACTERS = 2000
"""The most characters of an explanation, from the end of the output."""


class CommandScorer(Scorer):
    """A scorer whose score is whether a command exits with 0.

    With `reads = "score"` the score is the last line of its output instead: a JSON number, true or
    false, an object of metrics, or one with `value`, `answer`, `explanation` and `metadata`. Use it
    only for commands that run no code of the agent's, which could print a score of its own.
    `timeout` is in seconds.
    """

    kind: Literal["command"] = "command"
    command: str = Field(min_length=1)
    timeout: Seconds = 600.0
    reads: Literal["exit_code", "score"] = "exit_code"
    needs_workspace: ClassVar[bool] = True

    def time_limit(self, model: ModelSpec) -> float:  # noqa: ARG002 - of the base class
        return self.timeout

    def read(self, exit_code: int | None, output: str) -> Score:
        """Score a finished command. `exit_code` is None after a timeout, negative after a signal.

        Raises ScoringError if the command did not run to its end.
        """
        if exit_code is None:
            raise ScoringError(
                f"{self.command!r} took over {self.timeout:g} seconds: raise `timeout`."
            )
        if exit_code < 0 or exit_code in NOT_RUN_CODES:
            why = NOT_RUN_CODES.get(exit_code, f"was ended by signal {-exit_code}")
            raise ScoringError(
                f"{self.command!r} {why}: {output.strip()[-MAX_EXPLANATION_CHARACTERS:]}"
            )
        if self.reads == "score":
            return _score_in_last_line(self.command, output)
        return Score(
            value=exit_code == 0,
            explanation=output.strip()[-MAX_EXPLANATION_CHARACTERS:] or None,
            metadata={"exit_code": exit_code},
        )


def _score_in_last_line(command: str, output: str) -> Score:
    line = output.strip().rpartition("\n")[2]
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ScoringError(
            f"The last line of {command!r} is no JSON, and it has to be the score: {line[:100]!r}"
        ) from error
    return parse_score(value)
