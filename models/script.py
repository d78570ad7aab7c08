"""The lines of a scripted model, and the files they are read from."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, NonNegativeInt, StringConstraints, ValidationError

from events.base import Frozen
from events.usage import Usage
from models.model import Purpose

DEFAULT_NAME = "default"

Seconds: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


class ScriptError(ValueError):
    """A script file cannot be used; `str(error)` names the file and the place."""


class Failure(Frozen):
    """What one attempt gets in place of its answer.

    An error of HTTP `status`, unless one of the last four says otherwise: `hang` never answers,
    `disconnect` breaks off half-way, `partial` says there that it failed, `malformed` answers with
    something that is not JSON. `delay` and `retry_after` are in seconds.
    """

    status: Annotated[int, Field(ge=400, le=599)] = 500
    message: str | None = None
    code: str | None = None
    retry_after: Seconds | None = None
    delay: Seconds = 0.0
    hang: bool = False
    disconnect: bool = False
    partial: bool = False
    malformed: bool = False


class ToolCall(Frozen):
    """`arguments` is an object, or the raw text where a test wants it malformed."""

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    id: str | None = None

    @property
    def text(self) -> str:
        """The arguments as a model writes them."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


class Answer(Frozen):
    """One answer, after its `failures`, which are given one an attempt.

    `delay` is the time before the answer and `chunk_delay` that between its pieces, in seconds.
    `usage` is what the answer claims to have taken; its latency is measured all the same.
    """

    content: str = ""
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage = Usage()
    delay: Seconds = 0.0
    chunk_delay: Seconds = 0.0
    failures: tuple[Failure, ...] = ()

    @property
    def reason(self) -> str:
        """Why the answer ends where it does."""
        return self.finish_reason or ("tool_calls" if self.tool_calls else "stop")


def _answer_of(line: Any) -> Any:
    return {"content": line} if isinstance(line, str) else line


Line: TypeAlias = Annotated[Answer, BeforeValidator(_answer_of)]
"""An answer, or its text where it is nothing else."""


class Script(Frozen):
    """What a model says, answer by answer. `name` is also its name as a model.

    The lists after `answers` are for requests of another purpose; the last of a list is given
    again and again. Without them a child conversation and a grader get the `answers`, and the
    others a line made up for them. `repeat` goes on with the last answer for ever, and a request
    of more than `max_messages` messages is too long.
    """

    name: Name = DEFAULT_NAME
    answers: Annotated[tuple[Line, ...], Field(min_length=1)]
    summaries: tuple[Line, ...] = ()
    titles: tuple[Line, ...] = ()
    asides: tuple[Line, ...] = ()
    delegates: tuple[Line, ...] = ()
    grades: tuple[Line, ...] = ()
    repeat: bool = False
    max_messages: int | None = None

    def answers_for(self, purpose: Purpose) -> tuple[Answer, ...]:
        """What is said for a purpose, in order; nothing where a line is to be made up."""
        match purpose:
            case "":
                return self.answers
            case "delegate":
                return self.delegates or self.answers
            case "condense":
                return self.summaries
            case "title":
                return self.titles
            case "ask":
                return self.asides
            case "grade":
                return self.grades or self.answers

    def call_id(self, number: NonNegativeInt, position: int) -> str:
        """The id of a tool call that the script gives none: the same on every attempt."""
        return f"call_{self.slug}_{number + 1}_{position + 1}"

    @property
    def slug(self) -> str:
        """The name in the alphabet and length that every provider allows in an id."""
        return self.name.replace(".", "_")[:24]


def number_of_answer(script: Script, messages: Sequence[Mapping[str, Any]]) -> int:
    """Which answer a request asks for, counted from 0, told by the request alone.

    That is the number of answers already in it, so that a retry gets the same answer whatever
    crashed. The id of a tool call says its number even when a condenser has dropped what went
    before, so the count starts from the newest such id.
    """
    given = 0
    for message in reversed(messages):
        if message.get("role") != "assistant":
            continue
        for call in message.get("tool_calls") or ():
            number = _number_in(str(call.get("id")), script)
            if number is not None:
                return number + given
        given += 1
    return given


def _number_in(call_id: str, script: Script) -> int | None:
    """How many answers had been given when the call of this id was made."""
    head, _, rest = call_id.partition(f"call_{script.slug}_")
    number, _, position = rest.partition("_")
    return int(number) if not head and number.isdecimal() and position.isdecimal() else None


def exhausted(name: str, count: int, number: int) -> str:
    """What to do about a conversation that asks for an answer after the last, from 0."""
    has = f"{count} answer{'s' if count > 1 else ''}"
    return (
        f"The script {name} has {has} and the conversation asked for answer {number + 1}: "
        "add answers or end with one that calls finish."
    )


def read_scripts(path: Path) -> dict[str, Script]:
    """The scripts of a .json or .toml file by name.

    The file holds `{"answers": [...]}`, whose name is then `default`, or any number of
    `{"NAME": {"answers": [...]}}`. Raises ScriptError.
    """
    content = _parsed(path)
    if not isinstance(content, dict) or not content:
        raise ScriptError(f'{path} holds no script: write {{"answers": [...]}} into it.')
    if "answers" in content:
        content = {str(content.get("name", DEFAULT_NAME)): content}
    return {name: _script(path, name, fields) for name, fields in content.items()}


def version_of(path: Path) -> tuple[int, int]:
    """Changes with the file; a missing one has none, and reading it will say so."""
    if not path.exists():
        return (0, 0)
    status = path.stat()
    return (status.st_mtime_ns, status.st_size)


def _parsed(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            return tomllib.loads(text)
        if path.suffix == ".json":
            return json.loads(text)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ScriptError(f"The script file {path} cannot be read ({reason}).") from error
    except ValueError as error:
        raise ScriptError(f"{path} is not valid {path.suffix[1:].upper()}: {error}.") from error
    except RecursionError as error:
        raise ScriptError(f"{path} is nested too deeply: write it flatter.") from error
    raise ScriptError(f"{path} is neither JSON nor TOML: name it .json or .toml.")


def _script(path: Path, name: str, fields: Any) -> Script:
    named = {**fields, "name": name} if isinstance(fields, dict) else fields
    try:
        return Script.model_validate(named)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in first["loc"])
        raise ScriptError(f"{path} at {name}{place}: {first['msg']}.") from error
