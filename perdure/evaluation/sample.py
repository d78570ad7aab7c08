"""A sample: one row of a dataset, with the agent's input, its files and its target."""

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

from perdure.agent.loop.attempt import Attempt
from perdure.events.base import Frozen
from perdure.events.content import ImageContent, Message, join_text
from perdure.events.validation_errors import describe_errors

CONVERSATION_NAMESPACE = UUID("6b1f7c52-3c0e-5c0b-9d53-6f3e0a5d2c11")
"""The UUID namespace of the ids of batch conversations."""

ROLES = ("system", "user", "assistant")


class InvalidSample(ValueError):
    """A row that is no valid sample; the message has the reason, without the position."""


class EncodedFile(Frozen):
    """A binary file, in base64."""

    base64: str

    @property
    def content(self) -> bytes:
        return base64.b64decode(self.base64)


class SourceFile(Frozen):
    """A file at a path relative to the dataset, read when the batch is submitted."""

    source: str = Field(min_length=1)


def _check_workspace_path(text: str) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in text:
        raise ValueError(f"{text!r} is no path in a workspace: write one such as `data/input.csv`")
    return str(path)


def _check_base64(file: Any) -> Any:
    if isinstance(file, EncodedFile):
        try:
            base64.b64decode(file.base64, validate=True)
        except binascii.Error as error:
            raise ValueError(f"its base64 cannot be read ({error})") from error
    return file


def _parse_id(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _check_printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("an id is one line of visible characters")
    return text


def _parse_messages(value: Any) -> Any:
    """Parse a text as one user message, or messages in the format of OpenAI's API."""
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list | tuple):
        return value
    return tuple(map(_parse_message, value))


def _parse_message(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if value.get("role") not in ROLES:
        raise ValueError(f"the role of a message is one of {', '.join(ROLES)}")
    content = value.get("content")
    if isinstance(content, str | list):
        parts = [content] if isinstance(content, str) else content
        content = tuple(map(_parse_part, parts))
    return {**value, "content": content}


def _parse_part(value: Any) -> Any:
    match value:
        case str():
            return {"type": "text", "text": value}
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)}:
            return {"type": "image", "image_urls": (url,)}
        case _:
            return value


def _check_user_asks(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    parts = (part for message in messages if message.role == "user" for part in message.content)
    if not any(isinstance(part, ImageContent) or part.text.strip() for part in parts):
        raise ValueError("no message of the user asks for anything")
    if next(message for message in reversed(messages) if message.role != "system").role != "user":
        raise ValueError("the last message has to be the user's")
    return messages


def _parse_targets(value: Any) -> Any:
    """Parse a target or a list of alternatives; values other than text become their JSON."""
    if value is None:
        return ()
    targets = value if isinstance(value, list | tuple) else [value]
    return tuple(t if isinstance(t, str) else json.dumps(t, ensure_ascii=False) for t in targets)


SampleId: TypeAlias = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200),
    AfterValidator(_check_printable),
    BeforeValidator(_parse_id),
]
WorkspacePath: TypeAlias = Annotated[str, AfterValidator(_check_workspace_path)]
File: TypeAlias = Annotated[str | EncodedFile | SourceFile, AfterValidator(_check_base64)]


class Sample(Frozen):
    """A task for the agent: `input` has the messages to it, `target` the correct answers.

    `files` are written to the workspace before the command `setup` runs there. Each of the `turns`
    is a user message, sent when the agent has finished with the one before, until a limit.
    """

    id: SampleId
    input: Annotated[
        tuple[Message, ...], BeforeValidator(_parse_messages), AfterValidator(_check_user_asks)
    ]
    turns: tuple[Annotated[str, StringConstraints(min_length=1)], ...] = ()
    target: Annotated[tuple[str, ...], BeforeValidator(_parse_targets)] = ()
    files: dict[WorkspacePath, File] = Field(default_factory=dict)
    setup: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def question(self) -> str:
        """The text of the user's messages."""
        texts = (join_text(message.content) for message in self.input if message.role == "user")
        return "\n\n".join(texts)


def build_sample(fields: Mapping[str, Any]) -> Sample:
    """Build a sample from its fields; without an `id` its id is a hash of its content.

    Such an id stays the same when rows are added before it. Raises InvalidSample.
    """
    known = {name: value for name, value in fields.items() if value is not None}
    try:
        sample = Sample.model_validate({"id": "unnamed", **known})
        content = sample.model_dump_json(exclude={"id", "metadata"})
        sample.model_dump_json(include={"metadata"})
    except ValidationError as error:
        raise InvalidSample(describe_errors(error)) from error
    except PydanticSerializationError as error:  # a lone surrogate, which JSON may contain
        raise InvalidSample("it has text that is no Unicode: a lone \\ud800 to \\udfff") from error
    if "id" in known:
        return sample
    name = hashlib.sha256(content.encode()).hexdigest()[:16]
    return sample.model_copy(update={"id": name})


def conversation_id(batch: str, sample: str, epoch: int, attempt: int = 0) -> str:
    """Derive the id of the conversation of an attempt; the same arguments give the same id."""
    name = json.dumps([batch, sample, epoch, attempt], separators=(",", ":"))
    return str(uuid5(CONVERSATION_NAMESPACE, name))


def attempt_conversation_id(user_id: str, attempt: Attempt) -> str:
    return conversation_id(
        f"{user_id}/{attempt.batch}", attempt.sample, attempt.epoch, attempt.number
    )
