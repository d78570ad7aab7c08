"""The body of a request, and what it says to an agent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from perdure.api.conversations import MAX_TEXT_CHARS
from perdure.gateway.errors import Refused

Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=512)]
Long: TypeAlias = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
Role: TypeAlias = Literal[
    "developer", "system", "assistant", "user", "tool", "activity", "reasoning"
]
Status: TypeAlias = Literal["resolved", "cancelled"]

MAX_IMAGE_CHARS = 8_000_000


class Body(BaseModel):
    """A body of which other fields are read over."""

    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel)


class Source(Body):
    """The place that a part comes from: its bytes in base64, or an address."""

    type: Name
    value: Annotated[str, Field(max_length=MAX_IMAGE_CHARS)]
    mime_type: Name | None = None


class ContentPart(Body):
    type: Name
    text: Long | None = None
    source: Source | None = None


class InputMessage(Body):
    """A message of the client's history: only users' are read."""

    id: Name
    role: Role
    content: Any = None


class Context(Body):
    description: Long
    value: Long


class ResumeEntry(Body):
    """The answer to an interrupt."""

    interrupt_id: Name
    status: Status
    payload: Any = None


class RunAgentInput(Body):
    """`POST /ag-ui/{agent}`."""

    thread_id: Name
    run_id: Name
    parent_run_id: Name | None = None
    messages: Annotated[tuple[InputMessage, ...], Field(max_length=100_000)]
    state: Any = None
    tools: tuple[Any, ...] | None = None
    context: Annotated[tuple[Context, ...], Field(max_length=1000)] | None = None
    resume: Annotated[tuple[ResumeEntry, ...], Field(max_length=1000)] | None = None


class UserContent(Body):
    content: Long | Annotated[tuple[ContentPart, ...], Field(max_length=1000)]


@dataclass(frozen=True)
class NewMessage:
    """The message of the user that the log does not have yet."""

    message_id: str
    text: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A person's answer to a call that waits."""

    call_id: str
    approved: bool
    reason: str = ""


def refuse(detail: str, code: str = "invalid", status: int = 422) -> Refused:
    return Refused(status, code, detail)


def find_new_message(
    messages: Sequence[InputMessage], is_known: Callable[[str], bool]
) -> NewMessage | None:
    """Return the newest message of the user, unless it is known; with it, those right before it.

    Raises Refused.
    """
    newest: list[tuple[int, InputMessage]] = []
    for number, message in reversed([*enumerate(messages)]):
        if message.role == "user":
            if is_known(message.id):
                break
            newest.insert(0, (number, message))
        elif newest and message.role not in ("system", "developer"):
            break
    if not newest:
        return None
    contents = [_read_content(message, f"messages[{number}]") for number, message in newest]
    text = "\n\n".join(text for text, _ in contents if text.strip())
    images = tuple(image for _, images in contents for image in images)
    if not text and not images:
        raise refuse(f"messages[{newest[-1][0]}]: the message is empty: say something.")
    return NewMessage(newest[-1][1].id, text, images)


def join_instructions(messages: Sequence[InputMessage]) -> str | None:
    """Return what the application tells the agent before a thread begins."""
    told = [it.content for it in messages if it.role in ("system", "developer")]
    return "\n\n".join(text for text in told if isinstance(text, str) and text) or None


def parse_answers(entries: Sequence[ResumeEntry]) -> list[Answer]:
    """Parse the answers to interrupts. Raises Refused."""
    answers = [_parse_answer(entry, f"resume[{n}]") for n, entry in enumerate(entries)]
    if len({answer.call_id for answer in answers}) < len(answers):
        raise refuse("resume: an interrupt is answered twice: answer each once.")
    return answers


def _parse_answer(entry: ResumeEntry, where: str) -> Answer:
    if entry.status == "cancelled":
        return Answer(entry.interrupt_id, approved=False)
    payload = entry.payload if isinstance(entry.payload, dict) else {}
    approved, reason = payload.get("approved"), payload.get("reason") or ""
    if not isinstance(approved, bool) or not isinstance(reason, str):
        detail = "send `approved`, true or false, and perhaps a `reason` as text."
        raise refuse(f"{where}.payload: {detail}")
    return Answer(entry.interrupt_id, approved, reason)


def _read_content(message: InputMessage, where: str) -> tuple[str, list[str]]:
    """Return the text and the images of a user's message. Raises Refused, ValidationError."""
    content = UserContent.model_validate({"content": message.content}).content
    if isinstance(content, str):
        return content, []
    texts, images = [], []
    for number, part in enumerate(content):
        if part.type == "text" and part.text is not None:
            texts.append(part.text)
        elif part.type == "image" and part.source is not None:
            images.append(_read_image(part.source, f"{where}.content[{number}].source"))
        else:
            detail = "agents read texts and images: leave out what is another type."
            raise refuse(f"{where}.content[{number}]: {detail}", "unsupported_content")
    return "\n".join(texts), images


def _read_image(source: Source, where: str) -> str:
    if source.type == "data":
        return f"data:{source.mime_type or 'image/png'};base64,{source.value}"
    if source.type == "url" and source.value.startswith(("http://", "https://", "data:image/")):
        return source.value
    detail = "an image comes by `data`, or by a `url` of http."
    raise refuse(f"{where}: {detail}", "unsupported_content")
