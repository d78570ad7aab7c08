"""The types of the commands' options and arguments, and the options that commands share.

Nothing slow is imported here: the help of every command reads these types.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, dataclass_transform

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


CONDENSER_KINDS = (
    "none",
    "recent",
    "amortized",
    "observation_masking",
    "browser_masking",
    "llm_summary",
)
"""The kinds of condensers in `perdure.agent.spec`."""

EXPORT_FORMATS = {
    "results": "messages, as in llm_messages.json",
    "mcpbench": "logs and stats of mcpbench",
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

Timeout = Annotated[
    float | None, typer.Option(help="Seconds to wait; the work goes on after that.", min=0)
]

After = Annotated[int, typer.Option(help="Show what comes after this seq.", min=-1)]

Port = Annotated[int, typer.Option(help="0 means a free one.", min=0, max=65535)]

Detach = Annotated[bool, typer.Option("--detach", help="Start it, and do not wait.")]


def option(help: str, *names: str, default: Any = None, **details: Any) -> Any:
    """Declare a field of `Options` that is an option, with the details of `typer.Option`."""
    return field(default=default, metadata={"typer": typer.Option(*names, help=help, **details)})


def flag(help: str, *names: str) -> Any:
    return option(help, *names, default=False)


def argument(metavar: str, help: str, **details: Any) -> Any:
    """Declare a field of `Options` that is an argument; one in brackets is None by default."""
    default: Any = None if metavar.startswith("[") else MISSING
    typer_argument = typer.Argument(metavar=metavar, help=help, **details)
    return field(default=default, metadata={"typer": typer_argument})


def id_argument(
    metavar: str, help: str = "The conversation's id, how it begins, or @ for the newest."
) -> Any:
    """Declare an argument that is replaced by the whole ids: `perdure.cli.ids`."""
    return as_ids(argument(metavar, help, autocompletion=complete_ids), "conversation")


def as_ids(declared: Any, kind: Literal["conversation", "conversation or batch", "batch"]) -> Any:
    """Make a declared field one of ids or names that may be abbreviated."""
    return field(default=declared.default, metadata={**declared.metadata, "ids": kind})


@dataclass_transform(kw_only_default=True)
@dataclass(kw_only=True)
class Options:
    """The options and arguments of a command, parsed; every subclass is a dataclass of them."""

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
        "How to print results.", "-o", "--output", default=Format.text, metavar="FORMAT"
    )


class ConversationOptions(OutputOptions):
    """The options of a command about one conversation."""

    conversation_id: str = id_argument("ID")
    last: bool = flag("The newest conversation, in place of its ID.", LAST)


class ExportOptions(Options):
    """The options of an export."""

    format: str = option(
        "; ".join([*map(": ".join, EXPORT_FORMATS.items()), "or module:attribute."]),
        "--format",
        default=MISSING,
        metavar="NAME",
    )
    path: str = option("A file or a folder; - is stdout.", "--output", default="-", metavar="PATH")


class AgentOptions(Options):
    """The options that describe an agent; None leaves the agent's default."""

    model: str | None = option("One of litellm's names, scripted:FILE, or a script's name.")
    workspace: Path | None = option("Where the agent works; else a folder of its own.")
    tools: str | None = option("Names or module:attribute, with commas between them.")
    script: Path | None = option("Play this script as the model.")
    confirm: str | None = option(
        "Which actions wait for you: never, always, risky, or risky:LOW|MEDIUM|HIGH.",
        metavar="POLICY",
    )
    max_iterations: int | None = option("Answers of the model in a turn.", min=1)
    max_budget: float | None = option("US dollars for the conversation.", min=0)
    deadline: str | None = option("When it must be over: 90m, 2h or 1d from now, or an ISO date.")
    condenser: str | None = option(
        f"One of {', '.join(CONDENSER_KINDS)}, or module:attribute.", metavar="KIND"
    )
    mcp: Path | None = option('MCP servers: {"mcpServers": {name: ...}}.', metavar="FILE")
    skills: list[Path] | None = option("Skills; may be repeated.", "--skills", metavar="DIR")
    tags: list[str] | None = option("May be repeated.", "--tag", metavar="TAG")
    secrets: list[str] | None = option(
        "A secret of the worker; may be repeated.", "--secret", metavar="NAME"
    )
