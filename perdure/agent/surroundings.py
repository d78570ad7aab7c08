"""The surroundings of a conversation: a repository, metadata, descriptions of secrets."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field

from perdure.agent.policies import Variable

MAX_URL_CHARS = 2000
MAX_METADATA = 16
"""Most pairs of metadata: what OpenAI takes with a request, like the lengths below."""

OF_REPOSITORY = ("branch", "repository_token")
"""Fields of an agent that are of its repository: they do not hold for another one."""

SCHEMES = ("https", "http", "git")

RESERVED_DIRECTORIES = (".git", ".", "..")


def _split(url: str) -> SplitResult:
    """Split the URL of a repository. Raises ValueError with what is wrong, never with the URL."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ValueError("it is no URL: write it as https://HOST/OWNER/NAME") from error
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise ValueError("it is no URL of a server: write it as https://HOST/OWNER/NAME")
    return parts


def check_repository(url: str) -> str:
    """Return the URL of a repository. Raises ValueError for what git must not be given.

    Paths of the worker's machine, and the transports of git that run commands, are among it.
    """
    parts = _split(url)
    if parts.password is not None or "@" in parts.netloc:
        raise ValueError(
            "it has a user or a token in it, which logs would show: keep the token as a secret, "
            "and name that as `repository_token`"
        )
    if parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise ValueError("it has more than https://HOST/OWNER/NAME in it")
    if name_directory(url) in RESERVED_DIRECTORIES or not name_directory(url):
        raise ValueError(
            "its last part is no name of a folder: write it as https://HOST/OWNER/NAME"
        )
    return url


def check_token_transport(url: str) -> None:
    """Raise ValueError for the URL of a repository to which a token would go in plain text."""
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise ValueError("its token would go over the network in plain text: use https")


def is_none(value: object) -> bool:
    return value is None


def name_directory(url: str) -> str:
    """Name the directory of a repository in the workspace: the last part of its URL."""
    return urlsplit(url).path.rstrip("/").rpartition("/")[2].removesuffix(".git")


def _check_branch(name: str) -> str:
    """Return the name of a branch or a tag. Raises ValueError for what git takes for an option."""
    if name.startswith("-") or not name.isprintable() or any(it in name for it in " ~^:?*[\\"):
        raise ValueError("it is no name of a branch or a tag")
    return name


def _check_line(text: str) -> str:
    if not text.isprintable() or any(it in text for it in "<>\n"):
        raise ValueError("it must be one line without < and >")
    return text


RepositoryUrl: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=MAX_URL_CHARS), AfterValidator(check_repository)
]
Branch: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=255), AfterValidator(_check_branch)
]
Line: TypeAlias = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_check_line)]
SecretDescription: TypeAlias = Annotated[str, Field(max_length=500)]
SecretDescriptions: TypeAlias = dict[Variable, SecretDescription]
Metadata: TypeAlias = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=64)], Annotated[str, Field(max_length=512)]],
    Field(max_length=MAX_METADATA),
]
RecordingKey: TypeAlias = Annotated[str, Field(pattern="^blobs/[0-9a-f]{64}$")]
ConversationName: TypeAlias = Annotated[
    str, Field(pattern="^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
]


def name_author(name: str | None, email: str | None) -> dict[str, str]:
    """Return the variables by which git knows the author of commits."""
    values = {"NAME": name, "EMAIL": email}
    return {
        f"GIT_{side}_{part}": value
        for side in ("AUTHOR", "COMMITTER")
        for part, value in values.items()
        if value is not None
    }


def split_described_secrets(fields: Any) -> Any:
    """Return the fields of an agent in which secrets that are a table are names and descriptions.

    `{"secrets": {"TOKEN": "reads tickets"}}` is how a person writes them.
    """
    if not isinstance(fields, Mapping) or not isinstance(fields.get("secrets"), Mapping):
        return fields
    table = fields["secrets"]
    descriptions = {name: text for name, text in table.items() if text}
    return {
        **fields,
        "secrets": tuple(table),
        "secret_descriptions": {**(fields.get("secret_descriptions") or {}), **descriptions},
    }
