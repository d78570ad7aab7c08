"""The terminal's arguments are parsed, and its input is encoded as keys."""

import pytest

from perdure.events.actions import TerminalAction
from perdure.tools.terminal import TERMINAL, encode_keys, parse


def test_the_model_is_offered_what_an_action_holds() -> None:
    parameters = TERMINAL.definition.parameters
    assert list(parameters["properties"]) == ["command", "is_input", "timeout", "reset"]
    assert parameters["required"] == ["command"]
    assert parameters["additionalProperties"] is False


def test_arguments_become_an_action() -> None:
    assert parse({"command": "ls"}) == TerminalAction(command="ls")
    assert parse({"command": "ls", "timeout": "3"}) == TerminalAction(command="ls", timeout=3)
    assert parse({"command": "ls", "is_input": False, "reset": False, "timeout": None}) == (
        TerminalAction(command="ls")
    )
    assert parse({"command": "y", "is_input": "true"}) == (
        TerminalAction(command="y", is_input=True)
    )
    assert parse({"command": "", "reset": True}) == TerminalAction(command="", reset=True)


@pytest.mark.parametrize(
    ("sent", "command"), [("", ""), (" \n", ""), ("C-c", "C-c"), ("C-d", "C-d")]
)
def test_waiting_and_keys_are_input_whether_or_not_it_is_said(sent: str, command: str) -> None:
    assert parse({"command": sent}) == TerminalAction(command=command, is_input=True)


def test_an_empty_line_can_be_typed() -> None:
    assert parse({"command": "\n", "is_input": True}).command == "\n"


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("C-c", b"\x03"),
        ("C-D", b"\x04"),
        ("C-\\", b"\x1c"),
        ("", b""),
        ("yes", b"yes\n"),
        ("two\nlines\n", b"two\nlines\n"),
        ("\n", b"\n"),
        ("C-cc", b"C-cc\n"),
        ("é", "é\n".encode()),
    ],
)
def test_input_is_typed_as_at_a_keyboard(text: str, keys: bytes) -> None:
    assert encode_keys(text) == keys


def test_a_command_may_be_longer_than_any_line_or_argument() -> None:
    command = "echo " + "x" * 1_000_000
    assert parse({"command": command}).command == command


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "`command` is missing."),
        ({"command": "a\0b"}, "`command` holds a NUL character: write it as '\\0' for printf."),
        (
            {"command": "y\n" + "é" * 3_000, "is_input": True},
            "A line of the input is 6,000 bytes long, and a terminal takes at most 4,095: write "
            "the data to a file first.",
        ),
        (
            {"command": "y", "is_input": True, "reset": True},
            "`reset` starts a new shell, in which nothing waits for input: leave `is_input` out.",
        ),
        ({"command": "ls", "timeout": 0}, "`timeout`: input should be greater than 0, got 0."),
        (
            {"command": "ls", "timeout": "soon"},
            "`timeout`: input should be a valid number, unable to parse string as a number, got "
            "'soon'.",
        ),
        (
            {"command": "ls", "timeout": "inf"},
            "`timeout`: input should be a finite number, got 'inf'.",
        ),
        (
            {"command": ["ls"], "cwd": "/"},
            "`command`: input should be a valid string, got ['ls']; `cwd` is unknown here, use "
            "only `command`, `is_input`, `timeout`, `reset`.",
        ),
    ],
)
def test_invalid_values_are_reported_in_a_sentence(
    arguments: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole sentence is compared
        parse(arguments)
    assert str(raised.value) == sentence
