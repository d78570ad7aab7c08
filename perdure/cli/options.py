"""The types of the commands' options and arguments, and the options that commands share.

Nothing slow is imported here: the help of every command reads these types.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, dataclass_transform

import typer

NEWEST = "@"
"""What stands for the id of the newest conversation."""

LAST = "--last"

USAGE_ERROR = 2
"""The exit code for a mistake in the command line."""


class Format(StrEnum):
    """The formats of results."""

    text = "text"
    json = "json"
    jsonl = "jsonl"


EXPORT_FORMATS = {
    "results": "messages, as in llm_messages.json",
    "mcpbench": "history.jsonl of mcpbench: a message, call or result a line",
    "mcpbench-statistics": "mcpbench's counts: turns, calls, errors and condensations",
    "openai": "a line of OpenAI chat JSONL, for fine-tuning",
    "atif": "an ATIF trajectory, version 1.8",
    "openhands": "a folder that the OpenHands SDK opens",
    "inspect": "an Inspect log with the conversation as its sample",
    "raw": "the events as they are stored, a line each",
    "html": "one page for people, that needs nothing else",
}
"""The names and descriptions in `perdure.exports.formats`."""


def completer(name: str) -> Callable[[str], list[tuple[str, str]]]:
    """Return what completes a word: the function of that name in `perdure.cli.completion`.

    It is imported when a word is completed.
    """

    def complete(incomplete: str) -> list[tuple[str, str]]:
        function = getattr(import_module("perdure.cli.completion"), name)
        candidates: list[tuple[str, str]] = function(incomplete)
        return candidates

    return complete


complete_ids = completer("complete_ids")

GatewayUse: TypeAlias = Literal["works", "never", "unrelated"]
"""A command works through a gateway; or it needs the servers themselves, and is refused where a
gateway is set; or it is about this machine, and is refused if it is given --gateway."""

IdKind: TypeAlias = Literal[
    "conversation", "own conversation", "conversation or batch", "batch", "own batch"
]

Timeout = Annotated[
    float | None, typer.Option(help="The seconds to wait; the work continues after that.", min=0)
]

After = Annotated[int, typer.Option(help="Show only events after this seq.", min=-1)]

Images = Annotated[
    list[str] | None,
    typer.Option(
        "--image", metavar="FILE", help="A file or the address of an image; may be repeated."
    ),
]

Replayed = Annotated[
    Path | None,
    typer.Option(
        "--replay",
        metavar="FILE",
        help="Recorded events, as of `perdure show ID -o jsonl`: the answers in them come before "
        "those of the model, and tools are called anew.",
    ),
]

Port = Annotated[
    int, typer.Option(help="The port to listen on; 0 selects a free one.", min=0, max=65535)
]

Detach = Annotated[bool, typer.Option("--detach", help="Start it, and return at once.")]


def option(
    help: str, *names: str, default: Any = None, panel: str | None = None, **details: Any
) -> Any:
    """Declare a field of `Options` that is an option, with the details of `typer.Option`.

    Those of a `panel` stand under its heading in the help.
    """
    declared = typer.Option(*names, help=help, rich_help_panel=panel, **details)
    return field(default=default, metadata={"typer": declared})


def flag(help: str, *names: str) -> Any:
    return option(help, *names, default=False)


def argument(metavar: str, help: str, **details: Any) -> Any:
    """Declare a field of `Options` that is an argument; one in brackets is None by default."""
    default: Any = None if metavar.startswith("[") else MISSING
    typer_argument = typer.Argument(metavar=metavar, help=help, **details)
    return field(default=default, metadata={"typer": typer_argument})


def id_argument(metavar: str, own: bool = False) -> Any:
    """Declare an argument that becomes whole ids (`perdure.cli.ids`), with `own` of one's own."""
    shared = "" if own else ", or USER/ID"
    help = f"The conversation's id or its beginning{shared}; @ is the newest."
    kind: IdKind = "own conversation" if own else "conversation"
    return as_ids(argument(metavar, help, autocompletion=complete_ids), kind)


def as_ids(declared: Any, kind: IdKind) -> Any:
    """Make a declared field one of ids or names that may be abbreviated."""
    return field(default=declared.default, metadata={**declared.metadata, "ids": kind})


@dataclass_transform(kw_only_default=True)
@dataclass(kw_only=True)
class Options:
    """The options and arguments of a command, parsed; every subclass is a dataclass of them."""

    runs_user_code: ClassVar[bool] = True
    """Whether the command, or a process that it starts, may run tools or scorers of the user."""

    through_gateway: ClassVar[GatewayUse] = "never"
    """Whether the command works through a gateway, and needs no other server then."""

    def __init_subclass__(cls) -> None:
        # Every help makes all of these classes: what a dataclass can do besides costs time.
        dataclass(kw_only=True, eq=False, repr=False)(cls)

    @property
    def error_format(self) -> Format:
        """The format in which a failure is reported: that of results where it has them, or text."""
        name = getattr(self, "output", getattr(self, "format", Format.text))
        return Format(name) if name in [*Format] else Format.text


class OutputOptions(Options):
    """The options of a command that prints results."""

    output: Format = option(
        "The format of the results: text, json or jsonl.",
        "-o",
        "--output",
        default=Format.text,
        metavar="FORMAT",
    )


class ConversationOptions(OutputOptions):
    """The options of a command about one conversation, whose tools are run by workers alone."""

    runs_user_code = False
    through_gateway = "works"

    conversation_id: str = id_argument("ID")
    last: bool = flag("Use the newest conversation; there is no ID then.", LAST)


class FullOptions(Options):
    """The option of a command that prints events."""

    full: bool = flag("Print the whole output of tools.", "--full")


class TurnOptions(FullOptions):
    """The options of a command that follows a turn to its end."""

    answer_only: bool = flag(
        "Wait for the agent's answer, and print nothing else.", "--print", "-p"
    )


class ExportOptions(Options):
    """The options of an export."""

    format: str = option(
        "; ".join([*map(": ".join, EXPORT_FORMATS.items()), "or module:attribute."]),
        "--format",
        default=MISSING,
        metavar="NAME",
    )
    path: str = option(
        "The file or folder to write; - is stdout.", "--output", default="-", metavar="PATH"
    )
