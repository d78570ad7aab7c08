"""The types of the commands' options and arguments, and the options that commands share.

Nothing slow is imported here: the help of every command reads these types.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

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


Timeout = Annotated[
    float | None, typer.Option(help="Seconds to wait; the work goes on after that.", min=0)
]

After = Annotated[int, typer.Option(help="Show what comes after this seq.", min=-1)]

ExportFormat = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="; ".join(f"{name}: {about}" for name, about in EXPORT_FORMATS.items())
        + "; or module:attribute.",
    ),
]

ExportPath = Annotated[
    str, typer.Option("--output", metavar="PATH", help="A file or a folder; - is stdout.")
]

Port = Annotated[int, typer.Option(help="0 means a free one.", min=0, max=65535)]

Detach = Annotated[bool, typer.Option("--detach", help="Start it, and do not wait.")]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a command, parsed: each field is one, and its type says how."""

    @property
    def error_format(self) -> Format:
        """The format in which the command reports its failure."""
        return Format.text


@dataclass(frozen=True, kw_only=True)
class OutputOptions(Options):
    """The options of a command that prints results."""

    output: Annotated[
        Format, typer.Option("-o", "--output", help="How to print results.", metavar="FORMAT")
    ] = Format.text

    @property
    def error_format(self) -> Format:
        return self.output


@dataclass(frozen=True, kw_only=True)
class ConversationOptions(OutputOptions):
    """The options of a command about one conversation."""

    conversation_id: Annotated[str, typer.Argument(metavar="ID", help="The conversation's id.")]


@dataclass(frozen=True, kw_only=True)
class AgentOptions(Options):
    """The options that describe an agent; None leaves the agent's default."""

    model: Annotated[
        str | None, typer.Option(help="One of litellm's names, scripted:FILE, or a script's name.")
    ] = None
    workspace: Annotated[
        Path | None, typer.Option(help="Where the agent works; else a folder of its own.")
    ] = None
    tools: Annotated[
        str | None, typer.Option(help="Names or module:attribute, with commas between them.")
    ] = None
    script: Annotated[Path | None, typer.Option(help="Play this script as the model.")] = None
    confirm: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="Which actions wait for you: never, always, risky, or risky:LOW|MEDIUM|HIGH.",
        ),
    ] = None
    max_iterations: Annotated[
        int | None, typer.Option(help="Answers of the model in a turn.", min=1)
    ] = None
    max_budget: Annotated[
        float | None, typer.Option(help="US dollars for the conversation.", min=0)
    ] = None
    deadline: Annotated[
        str | None,
        typer.Option(help="When it must be over: 90m, 2h or 1d from now, or an ISO date."),
    ] = None
    condenser: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help=f"One of {', '.join(CONDENSER_KINDS)}, or module:attribute."
        ),
    ] = None
    mcp: Annotated[
        Path | None, typer.Option(metavar="FILE", help='MCP servers: {"mcpServers": {name: ...}}.')
    ] = None
    skills: Annotated[
        list[Path] | None, typer.Option("--skills", metavar="DIR", help="Skills; may be repeated.")
    ] = None
    tags: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="May be repeated.")
    ] = None
    secrets: Annotated[
        list[str] | None,
        typer.Option("--secret", metavar="NAME", help="A secret of the worker; may be repeated."),
    ] = None
