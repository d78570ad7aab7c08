"""The params of the requests, as far as they are read."""

from pathlib import PurePosixPath, PureWindowsPath
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, Discriminator, Field, StrictInt, StrictStr, Tag

from perdure.wording import shorten


def _check_absolute(path: str) -> str:
    if not (PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()):
        raise ValueError(f"{shorten(path)!r} is not an absolute path")
    return path


AbsolutePath: TypeAlias = Annotated[StrictStr, AfterValidator(_check_absolute)]
"""The path of a folder on the machine of the editor."""


class Initialize(BaseModel):
    protocolVersion: StrictInt = Field(ge=0)  # noqa: N815 - the protocol's spelling


class Pair(BaseModel):
    """A variable of a program, or a header of requests."""

    name: StrictStr
    value: StrictStr


class StdioServer(BaseModel):
    """An MCP server that is started; its messages have no `type`."""

    name: StrictStr
    command: StrictStr
    args: tuple[StrictStr, ...] = ()
    env: tuple[Pair, ...] = ()


class HttpServer(BaseModel):
    """An MCP server that runs already."""

    type: Literal["http"]
    name: StrictStr
    url: StrictStr
    headers: tuple[Pair, ...] = ()


def _transport_of(server: Any) -> str:
    return str(server.get("type", "stdio")) if isinstance(server, dict) else "stdio"


Server: TypeAlias = Annotated[
    Annotated[StdioServer, Tag("stdio")] | Annotated[HttpServer, Tag("http")],
    Discriminator(_transport_of),
]


class NewSession(BaseModel):
    cwd: AbsolutePath
    mcpServers: tuple[Server, ...] = ()  # noqa: N815


class NamedSession(BaseModel):
    """The params of a request about a session."""

    sessionId: StrictStr  # noqa: N815


class OpenSession(NamedSession):
    """The params of `session/load`, `session/resume` and `session/fork`."""

    cwd: AbsolutePath
    mcpServers: tuple[Server, ...] | None = None  # noqa: N815


class ListSessions(BaseModel):
    cwd: AbsolutePath | None = None
    cursor: StrictStr | None = None


class SetMode(NamedSession):
    modeId: StrictStr  # noqa: N815


class TextBlock(BaseModel):
    type: Literal["text"]
    text: StrictStr


class ImageBlock(BaseModel):
    type: Literal["image"]
    data: StrictStr
    mimeType: StrictStr  # noqa: N815


class ResourceLink(BaseModel):
    type: Literal["resource_link"]
    uri: StrictStr
    name: StrictStr = ""


class ResourceContents(BaseModel):
    """A text, or the base64 of bytes."""

    uri: StrictStr
    mimeType: StrictStr | None = None  # noqa: N815
    text: StrictStr | None = None
    blob: StrictStr | None = None


class ResourceBlock(BaseModel):
    type: Literal["resource"]
    resource: ResourceContents


Block: TypeAlias = Annotated[
    TextBlock | ImageBlock | ResourceLink | ResourceBlock, Field(discriminator="type")
]


class SendPrompt(NamedSession):
    prompt: tuple[Block, ...] = Field(min_length=1)
