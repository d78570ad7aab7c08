"""What the model may ask of the terminal, and the keys that its input stands for."""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from events.actions import TerminalAction
from tools.arguments import validated

LONGEST_LINE = 4_095
"""Bytes; a terminal drops what a line of input has beyond it."""

KEY = re.compile(r"C-[A-Za-z\[\\\]^_]")


class TerminalArguments(BaseModel):
    """What the model is offered."""

    model_config = ConfigDict(extra="forbid")

    command: str = Field(
        description="The command, or several joined by `&&`, `;` or newlines. With `is_input`: the "
        "text to type for the command that runs (Enter is added), a key (`C-c`, `C-d`, `C-z`), or "
        "nothing to wait for more output."
    )
    is_input: bool = Field(
        default=False, description="Whether `command` is input for the command that still runs."
    )
    timeout: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Seconds to wait for the command, also while it prints nothing.",
    )
    reset: bool = Field(
        default=False,
        description="Whether to end the shell with all its processes first and start a new one.",
    )


def parse(arguments: dict[str, Any]) -> TerminalAction:
    """The action; waiting for more and keys are input, whether or not the model says so."""
    take = validated(TerminalArguments, arguments)
    if "\0" in take.command:
        raise ValueError("`command` holds a NUL character: write it as '\\0' for printf.")
    if take.reset and take.is_input:
        raise ValueError(
            "`reset` starts a new shell, in which nothing waits for input: leave `is_input` out."
        )
    command = take.command if take.is_input or take.command.strip() else ""
    is_input = take.is_input or (not take.reset and bool(not command or KEY.fullmatch(command)))
    if is_input and (longest := max(map(len, command.encode().split(b"\n")))) > LONGEST_LINE:
        raise ValueError(
            f"A line of the input is {longest:,} bytes long, and a terminal takes at most "
            f"{LONGEST_LINE:,}: write the data to a file first."
        )
    return TerminalAction(
        command=command, is_input=is_input, timeout=take.timeout, reset=take.reset
    )


def keys_of(text: str) -> bytes:
    """What is typed for an input: a control character, or the text and Enter."""
    if KEY.fullmatch(text):
        return bytes([ord(text[-1].upper()) & 0x1F])
    return text.encode() if not text or text.endswith("\n") else f"{text}\n".encode()
