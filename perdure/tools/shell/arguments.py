"""The arguments of the terminal tool, and the encoding of its input as keys."""

import re
from typing import Any

from pydantic import Field

from perdure.events.actions import TerminalAction
from perdure.tools.arguments import Arguments, validate_arguments

MAX_INPUT_LINE_BYTES = 4_095
"""A terminal drops the rest of a longer line of input."""

KEY = re.compile(r"C-[A-Za-z\[\\\]^_]")


class TerminalArguments(Arguments):
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
    """Parse the action; an empty command and a key are input, even without `is_input`."""
    values = validate_arguments(TerminalArguments, arguments)
    if "\0" in values.command:
        raise ValueError("`command` holds a NUL character: write it as '\\0' for printf.")
    if values.reset and values.is_input:
        raise ValueError(
            "`reset` starts a new shell, in which nothing waits for input: leave `is_input` out."
        )
    command = values.command if values.is_input or values.command.strip() else ""
    is_input = values.is_input or (not values.reset and bool(not command or KEY.fullmatch(command)))
    if (
        is_input
        and (longest := max(map(len, command.encode().split(b"\n")))) > MAX_INPUT_LINE_BYTES
    ):
        raise ValueError(
            f"A line of the input is {longest:,} bytes long, and a terminal takes at most "
            f"{MAX_INPUT_LINE_BYTES:,}: write the data to a file first."
        )
    changes = {"command": command, "is_input": is_input}
    return TerminalAction.model_validate(values.model_dump() | changes)


def encode_keys(text: str) -> bytes:
    """Encode an input as typed bytes: a control character, or the text and Enter."""
    if KEY.fullmatch(text):
        return bytes([ord(text[-1].upper()) & 0x1F])
    return text.encode() if not text or text.endswith("\n") else f"{text}\n".encode()
