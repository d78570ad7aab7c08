"""The scripts of scripted models, and their files."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, NonNegativeInt, StringConstraints, ValidationError

from perdure.events.base import Frozen
from perdure.events.usage import Usage
from perdure.models.model import Purpose
from perdure.testing.errors import ScriptError

DEFAULT_NAME = "default"

Seconds: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


class ScriptedFailure(Frozen):
    """A failure of one attempt at an answer.

    It is an error of HTTP `status` unless one of the last four fields is set: `hang` never answers,
    `disconnect` closes the connection half-way, `partial` sends an error half-way, `malformed`
    answers with invalid JSON. `delay` and `retry_after` are in seconds.
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


class ScriptedToolCall(Frozen):
    """A tool call of an answer; `arguments` is an object, or raw text that may be malformed."""

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    id: str | None = None

    @property
    def arguments_text(self) -> str:
        """The arguments as the JSON text that a model writes."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


class ScriptedAnswer(Frozen):
    """An answer, preceded by its `failures`, one for each attempt.

    `delay` is the time before the answer and `chunk_delay` that between its pieces, in seconds.
    `usage` is what the answer claims to have used; its latency is measured all the same.
    """

    content: str = ""
    reasoning_content: str | None = None
    tool_calls: tuple[ScriptedToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage = Usage()
    delay: Seconds = 0.0
    chunk_delay: Seconds = 0.0
    failures: tuple[ScriptedFailure, ...] = ()

    @property
    def effective_finish_reason(self) -> str:
        """The finish reason, by default according to the tool calls."""
        return self.finish_reason or ("tool_calls" if self.tool_calls else "stop")


def _parse_line(line: Any) -> Any:
    return {"content": line} if isinstance(line, str) else line


Line: TypeAlias = Annotated[ScriptedAnswer, BeforeValidator(_parse_line)]
"""An answer, or only its text."""


class Script(Frozen):
    """The answers of a scripted model. `name` is also its name as a model.

    The lists after `answers` are for requests of another purpose, and their last answer repeats.
    Without them a child conversation and a grader get the `answers`, and the other purposes a
    default text. `repeat` repeats the last of the `answers`, and a request of more than
    `max_messages` messages exceeds the context window.
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

    def answers_for(self, purpose: Purpose) -> tuple[ScriptedAnswer, ...]:
        """Return the answers for a purpose; empty if it gets a default text."""
        lists: dict[Purpose, tuple[ScriptedAnswer, ...]] = {
            "condense": self.summaries,
            "title": self.titles,
            "ask": self.asides,
            "delegate": self.delegates or self.answers,
            "grade": self.grades or self.answers,
        }
        return lists.get(purpose, self.answers)

    def call_id(self, number: NonNegativeInt, position: int) -> str:
        """Make the id of a tool call without one: the same in every attempt."""
        return f"call_{self.slug}_{number + 1}_{position + 1}"

    @property
    def slug(self) -> str:
        """The name in characters and length that every provider allows in an id."""
        return self.name.replace(".", "_")[:24]


def answer_number(script: Script, messages: Sequence[Mapping[str, Any]]) -> int:
    """Find the number, from 0, of the answer that a request is due, from the request alone.

    It is the number of answers already in the request, so that a retry gets the same answer. The id
    of a tool call has its answer's number even after a condenser has dropped earlier messages, so
    the count starts from the newest such id.
    """
    count = 0
    for message in reversed(messages):
        if message.get("role") != "assistant":
            continue
        for call in message.get("tool_calls") or ():
            number = _answer_number_in(str(call.get("id")), script)
            if number is not None:
                return number + count
        count += 1
    return count


def _answer_number_in(call_id: str, script: Script) -> int | None:
    """Parse a tool call's id: the number of answers up to and including its own."""
    head, _, rest = call_id.partition(f"call_{script.slug}_")
    number, _, position = rest.partition("_")
    return int(number) if not head and number.isdecimal() and position.isdecimal() else None


def read_scripts(path: Path) -> dict[str, Script]:
    """Read the scripts of a .json or .toml file, by name.

    The file holds `{"answers": [...]}`, whose name is then `default`, or any number of
    `{"NAME": {"answers": [...]}}`. Raises ScriptError if the file is invalid.
    """
    content = _parse_file(path)
    if not isinstance(content, dict) or not content:
        raise ScriptError(f'{path} holds no script: write {{"answers": [...]}} into it.')
    if "answers" in content:
        content = {str(content.get("name", DEFAULT_NAME)): content}
    return {name: _parse_script(path, name, fields) for name, fields in content.items()}


def file_version(path: Path) -> tuple[int, int]:
    """Return the file's mtime in nanoseconds and size, a cache key; zeros for a missing file."""
    if not path.exists():
        return (0, 0)
    status = path.stat()
    return (status.st_mtime_ns, status.st_size)


def _parse_file(path: Path) -> Any:
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


def _parse_script(path: Path, name: str, fields: Any) -> Script:
    named = {**fields, "name": name} if isinstance(fields, dict) else fields
    try:
        return Script.model_validate(named)
    except ValidationError as error:
        first = error.errors()[0]
        keys = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])
        raise ScriptError(f"{path} at {name}{keys}: {first['msg']}.") from error
