"""The types of the commands' options and arguments.

Nothing slow is imported here: the help of every command reads these types.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

USAGE_ERROR = 2
"""The exit code for a mistake in the command line."""


class Format(StrEnum):
    """The formats of results."""

    text = "text"
    json = "json"
    jsonl = "jsonl"


class ComparisonFormat(StrEnum):
    """The formats of a comparison."""

    text = "text"
    json = "json"


class ResultsFormat(StrEnum):
    """The formats of a batch's results."""

    text = "text"
    json = "json"
    csv = "csv"
    parquet = "parquet"


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


ConversationId = Annotated[str, typer.Argument(metavar="ID", help="The conversation's id.")]

Output = Annotated[
    Format, typer.Option("-o", "--output", help="How to print results.", metavar="FORMAT")
]

Timeout = Annotated[
    float | None, typer.Option(help="Seconds to wait; the work goes on after that.", min=0)
]

Workspace = Annotated[
    Path | None, typer.Option(help="Where the agent works; else a folder of its own.")
]

CallIds = Annotated[
    list[str] | None,
    typer.Option("--call", metavar="ID", help="A call's id; may be repeated."),
]

ThroughSeq = Annotated[
    int | None, typer.Option(metavar="SEQ", help="All that wait, up to this seq.", min=0)
]

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

BatchName = Annotated[str, typer.Argument(metavar="NAME", help="The batch's name.")]

BatchOutput = Annotated[
    Format,
    typer.Option("-o", "--output", "--format", help="How to print results.", metavar="FORMAT"),
]

Detach = Annotated[bool, typer.Option("--detach", help="Start it, and do not wait.")]


@dataclass(frozen=True)
class AgentOptions:
    """The agent options as given; None leaves the agent's default.

    Every field is an option of each command that is decorated with `with_agent_options`.
    """

    model: Annotated[
        str | None, typer.Option(help="One of litellm's names, scripted:FILE, or a script's name.")
    ] = None
    workspace: Workspace = None
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


def with_agent_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the command's parameter `agent` by an option for each field of AgentOptions."""
    names = [field.name for field in fields(AgentOptions)]
    options = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=None, annotation=field.type)
        for field in fields(AgentOptions)
    ]
    parameters: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        keyword = parameter.replace(kind=Parameter.KEYWORD_ONLY)
        parameters += options if parameter.name == "agent" else [keyword]

    @wraps(command)
    def with_options(**arguments: Any) -> None:
        agent = AgentOptions(**{name: arguments.pop(name) for name in names})
        command(agent=agent, **arguments)

    with_options.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return with_options
