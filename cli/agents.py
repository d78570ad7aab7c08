"""What agent a command line asks for."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from agent.spec import Confirmation, Limits, ModelSpec, SingleCondenser, Skills, Spec
from cli.mcp_file import read_servers
from cli.moments import moment_of
from client.errors import Invalid
from tools.catalog import BUILT_IN

CONDENSERS = tuple(
    kind.model_fields["kind"].default for kind in get_args(get_args(SingleCondenser)[0])
)

Model = Annotated[
    str | None, typer.Option(help="One of litellm's names, scripted:FILE, or a script's name.")
]
Workspace = Annotated[
    Path | None, typer.Option(help="Where the agent works; else a folder of its own.")
]
Tools = Annotated[
    str | None, typer.Option(help="Names or module:attribute, with commas between them.")
]
ScriptFile = Annotated[Path | None, typer.Option(help="Play this script as the model.")]
Confirm = Annotated[
    str | None,
    typer.Option(
        metavar="POLICY",
        help="Which actions wait for you: never, always, risky, or risky:LOW|MEDIUM|HIGH.",
    ),
]
MaxIterations = Annotated[int | None, typer.Option(help="Answers of the model in a turn.", min=1)]
MaxBudget = Annotated[float | None, typer.Option(help="US dollars for the conversation.", min=0)]
Deadline = Annotated[
    str | None, typer.Option(help="When it must be over: 90m, 2h or 1d from now, or an ISO date.")
]
Condenser = Annotated[
    str | None, typer.Option(metavar="KIND", help=f"One of {', '.join(CONDENSERS)}.")
]
Mcp = Annotated[
    Path | None, typer.Option(metavar="FILE", help='MCP servers: {"mcpServers": {name: ...}}.')
]
SkillFolders = Annotated[
    list[Path] | None, typer.Option("--skills", metavar="DIR", help="Skills; may be repeated.")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="May be repeated.")]
Secrets = Annotated[
    list[str] | None,
    typer.Option("--secret", metavar="NAME", help="A secret of the worker; may be repeated."),
]
Images = Annotated[
    list[str] | None,
    typer.Option("--image", metavar="FILE", help="An image or its address; may be repeated."),
]


@dataclass(frozen=True)
class Wanted:
    """Each field as it is given; None leaves the default of the spec."""

    workspace: Path | None = None
    tools: str | None = None
    confirm: str | None = None
    max_iterations: int | None = None
    max_budget: float | None = None
    deadline: str | None = None
    condenser: str | None = None
    mcp: Path | None = None
    skills: list[Path] | None = None
    tags: list[str] | None = None
    secrets: list[str] | None = None

    def spec(self, model: ModelSpec) -> Spec:
        """Raises Invalid."""
        given = {
            "workspace": str(self.workspace.absolute()) if self.workspace else None,
            "tools": tuple(self.tools.split(",")) if self.tools is not None else None,
            "confirmation": confirmation_of(self.confirm) if self.confirm is not None else None,
            "condenser": {"kind": self.condenser} if self.condenser is not None else None,
            "mcp": read_servers(self.mcp) if self.mcp else None,
            "skills": Skills(folders=_folders(self.skills)) if self.skills else None,
            "tags": tuple(self.tags) if self.tags else None,
            "secrets": _named(self.secrets) if self.secrets else None,
        }
        chosen = {name: value for name, value in given.items() if value is not None}
        return Spec.model_validate({"model": model, "limits": self._limits(), **chosen})

    def check(self) -> None:
        """What can be told before anything is started. Raises Invalid."""
        for name in (self.tools or "terminal").split(","):
            if ":" not in name and name not in BUILT_IN:
                raise Invalid(
                    f"There is no tool {name!r}: there are {', '.join(BUILT_IN)}.",
                    "Name one of your own as module:attribute.",
                )
        if self.condenser is not None and self.condenser not in CONDENSERS:
            raise Invalid(f"There is no condenser {self.condenser!r}: use {', '.join(CONDENSERS)}.")
        self.spec(ModelSpec(name="any"))

    def _limits(self) -> Limits:
        given: dict[str, Any] = {
            "max_iterations": self.max_iterations,
            "max_budget": self.max_budget,
            "deadline": moment_of(self.deadline, datetime.now(UTC)) if self.deadline else None,
        }
        return Limits(**{name: value for name, value in given.items() if value is not None})


def confirmation_of(text: str) -> Confirmation:
    """`never`, `always`, `risky`, or `risky:MEDIUM` with the risk from which on. Raises Invalid."""
    policy, _, threshold = text.partition(":")
    given = {"policy": policy, **({"threshold": threshold.upper()} if threshold else {})}
    known = policy == "risky" or (policy in ("never", "always") and not threshold)
    if not known or threshold.upper() not in ("", "LOW", "MEDIUM", "HIGH"):
        raise Invalid(
            f"There is no policy {text!r}: use never, always, risky, or risky:LOW, risky:MEDIUM "
            "or risky:HIGH."
        )
    return Confirmation.model_validate(given)


def _named(secrets: list[str]) -> tuple[str, ...]:
    """Raises Invalid."""
    for name in secrets:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name):
            raise Invalid(
                f"{name!r} is no name of a secret: name one of the worker's, such as API_TOKEN.",
                "Its value stays with the worker, in PERDURE_SECRETS or PERDURE_SECRET_API_TOKEN.",
            )
    return tuple(secrets)


def _folders(given: list[Path]) -> tuple[str, ...]:
    """By their whole paths: the worker looks from elsewhere. Raises Invalid."""
    for folder in given:
        if not folder.is_dir():
            raise Invalid(f"{folder} is no folder of skills.")
    return tuple(str(folder.absolute()) for folder in given)
