"""The extensions of an agent: servers of the Model Context Protocol, and skills."""

from pydantic import Field

from perdure.agent.policies import Seconds
from perdure.events.base import Tolerant


class McpServer(Tolerant):
    """A server of the Model Context Protocol: a `command` to start, or a `url` to ask.

    `env` and `headers` map a name to the environment variable of the worker that holds its value:
    that is the place of secrets. `env_values` and `header_values` are values written out, in which
    the worker replaces each `${NAME}` by its variable of that name. An untrusted server's hints can
    only make its treatment stricter. Times are in seconds.
    """

    name: str
    """The server's name; its tools are offered as `NAME__TOOL`."""
    command: str | None = None
    """The program that the worker starts, outside of the sandbox."""
    args: tuple[str, ...] = ()
    """The arguments of the program."""
    env: dict[str, str] = Field(default_factory=dict)
    """The program's variables: each name maps to a variable of the worker."""
    env_values: dict[str, str] = Field(default_factory=dict)
    """The program's variables with their values written out."""
    cwd: str | None = None
    """The program's folder, relative to the workspace."""
    url: str | None = None
    """The address of a server that runs already, over HTTP."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers of each request: each name maps to a variable of the worker."""
    header_values: dict[str, str] = Field(default_factory=dict)
    """Headers with their values written out."""
    trusted: bool = False
    """Whether the server's hints count: a tool that it calls read-only may be called again."""
    include: tuple[str, ...] = ()
    """The tools to offer, by name; an empty list offers all."""
    start_timeout: Seconds = 60.0
    """The time in which the server must start."""
    call_timeout: Seconds = 600.0
    """The time in which a call of a tool must end."""


class Skills(Tolerant):
    """Sources of skills: folders of markdown files, and the workspace's own."""

    folders: tuple[str, ...] = ()
    """Folders of skills on the worker's machine."""
    workspace: bool = True
    """Whether skills in the workspace (`.agents/skills` and similar folders) are read."""
    instructions: tuple[str, ...] = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".cursorrules")
    """Files of the workspace whose text goes with the first message."""
