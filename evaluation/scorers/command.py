"""A command in the sample's workspace decides; what it is run by is no matter of this file."""

import json
from typing import Any, Literal

from pydantic import Field

from agent.spec import Seconds
from evaluation.score import Reads, Score, Scorer, Unscorable, score_of

NOT_RUN = {126: "cannot be executed", 127: "is not there"}
"""Exit codes by which a shell says that it ran nothing (POSIX.1-2017, 2.8.2)."""

LONGEST = 2000
"""Characters of the end of an output that explain a score."""


class Command(Scorer):
    """Right where the command ends with 0, wrong where it ends with anything else.

    With `reads = "score"` the last line of its output is the score instead: a JSON number, true or
    false, or an object of metrics, or one with `value`, `answer`, `explanation` and `metadata`.
    That is for commands that run nothing of what the agent wrote, which could else print its own
    score. `timeout` is in seconds.
    """

    kind: Literal["command"] = "command"
    command: str = Field(min_length=1)
    timeout: Seconds = 600.0
    reads: Reads = "exit_code"

    def read(self, exit_code: int | None, output: str) -> Score:
        """What came of the command; None says that it ran into its time limit, as a negative code
        says that a signal ended it. Raises Unscorable."""
        if exit_code is None:
            raise Unscorable(
                f"{self.command!r} took over {self.timeout:g} seconds: raise `timeout`."
            )
        if exit_code < 0 or exit_code in NOT_RUN:
            why = NOT_RUN.get(exit_code, f"was ended by signal {-exit_code}")
            raise Unscorable(f"{self.command!r} {why}: {output.strip()[-LONGEST:]}")
        if self.reads == "score":
            return _last_line(self.command, output)
        return Score(
            value=exit_code == 0,
            explanation=output.strip()[-LONGEST:] or None,
            metadata={"exit_code": exit_code},
        )


def _last_line(command: str, output: str) -> Score:
    line = output.strip().rpartition("\n")[2]
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unscorable(
            f"The last line of {command!r} is no JSON, and it has to be the score: {line[:100]!r}"
        ) from error
    return score_of(value)
