"""One row of a dataset: what an agent is asked, with what files, and what would be right."""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeAlias
from uuid import UUID, uuid5

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
)
from pydantic_core import PydanticSerializationError

from evaluation.faults import faults
from events.base import Frozen
from events.content import ImageContent, Message, text_of

CONVERSATIONS = UUID("6b1f7c52-3c0e-5c0b-9d53-6f3e0a5d2c11")
"""The namespace of the ids of a batch's conversations."""

ROLES = ("system", "user", "assistant")


class Misfit(ValueError):
    """A row that is no sample; the text says why, and not where."""


class Encoded(Frozen):
    """A file that is no text."""

    base64: str

    @property
    def content(self) -> bytes:
        return base64.b64decode(self.base64)


class Source(Frozen):
    """A file that is read from beside the dataset, before anything starts."""

    source: str = Field(min_length=1)


def _workspace_path(text: str) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in text:
        raise ValueError(f"{text!r} is no path in a workspace: write one such as `data/input.csv`")
    return str(path)


def _decodes(file: Any) -> Any:
    if isinstance(file, Encoded):
        try:
            base64.b64decode(file.base64, validate=True)
        except binascii.Error as error:
            raise ValueError(f"its base64 cannot be read ({error})") from error
    return file


def _printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("an id is one line of visible characters")
    return text


def _messages(given: Any) -> Any:
    """A text is one message of the user; messages may be written as OpenAI's API takes them."""
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list | tuple):
        return given
    return tuple(_message(one) for one in given)


def _message(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    if given.get("role") not in ROLES:
        raise ValueError(f"the role of a message is one of {', '.join(ROLES)}")
    content = given.get("content")
    parts = [content] if isinstance(content, str) else content
    return {**given, "content": tuple(map(_part, parts)) if isinstance(parts, list) else parts}


def _part(given: Any) -> Any:
    match given:
        case str():
            return {"type": "text", "text": given}
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)}:
            return {"type": "image", "image_urls": (url,)}
        case _:
            return given


def _asks(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    told = (part for one in messages if one.role == "user" for part in one.content)
    if not any(isinstance(part, ImageContent) or part.text.strip() for part in told):
        raise ValueError("no message of the user asks for anything")
    if next(one for one in reversed(messages) if one.role != "system").role != "user":
        raise ValueError("the last message has to be the user's")
    return messages


def _targets(given: Any) -> Any:
    """A list holds alternatives; what is no text is taken as its JSON."""
    if given is None:
        return ()
    alternatives = given if isinstance(given, list | tuple) else [given]
    return tuple(
        one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in alternatives
    )


SampleId: TypeAlias = Annotated[
    str, StringConstraints(min_length=1, max_length=200), AfterValidator(_printable)
]
WorkspacePath: TypeAlias = Annotated[str, AfterValidator(_workspace_path)]
File: TypeAlias = Annotated[str | Encoded | Source, AfterValidator(_decodes)]


class Sample(Frozen):
    """`input` is what the agent is told, `target` what would be right: any one of them.

    `files` are put into the workspace before `setup`, a command, runs there. Each of the `turns` is
    said when the agent is done with what was said before; a limit ends them too.
    """

    id: SampleId
    input: Annotated[tuple[Message, ...], BeforeValidator(_messages), AfterValidator(_asks)]
    turns: tuple[Annotated[str, StringConstraints(min_length=1)], ...] = ()
    target: Annotated[tuple[str, ...], BeforeValidator(_targets)] = ()
    files: dict[WorkspacePath, File] = Field(default_factory=dict)
    setup: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def question(self) -> str:
        """The words of the user."""
        return "\n\n".join(text_of(one.content) for one in self.input if one.role == "user")


def sample_of(fields: Mapping[str, Any]) -> Sample:
    """The sample with these fields; without an `id` it is named by what it holds.

    An id made so stays the same when rows are added before it. Raises Misfit.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    if "id" not in given:
        given["id"] = "unnamed"
    elif isinstance(given["id"], int) and not isinstance(given["id"], bool):
        given["id"] = str(given["id"])
    try:
        sample = Sample.model_validate(given)
        content = sample.model_dump_json(exclude={"id", "metadata"})
        sample.model_dump_json(include={"metadata"})
    except ValidationError as error:
        raise Misfit(faults(error)) from error
    except PydanticSerializationError as error:  # half of a surrogate pair, as JSON may hold one
        raise Misfit("it has text that is no Unicode: a lone \\ud800 to \\udfff") from error
    if fields.get("id") is not None:
        return sample
    name = hashlib.sha256(content.encode()).hexdigest()[:16]
    return sample.model_copy(update={"id": name})


def conversation_id(batch: str, sample: str, epoch: int, attempt: int = 0) -> str:
    """The conversation in which this attempt at a sample is made: always the same one."""
    name = json.dumps([batch, sample, epoch, attempt], separators=(",", ":"))
    return str(uuid5(CONVERSATIONS, name))
