"""Tools for models that have no way of their own to call them: offered and called in the text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias
from uuid import uuid4

from agent.completion import Completion
from events.content import MessageToolCall, TextContent, text_of
from models.call_text import STOP, describe, read, said_before, write
from models.model import Complete, OnText, Request

Message: TypeAlias = Mapping[str, Any]

MANUAL = """
You can call the functions below. To call one, end your message with the call, written so:

<function=name_of_the_function>
<parameter=first_parameter>value</parameter>
<parameter=second_parameter>
a value that has
several lines
</parameter>
</function>

- Make one call a message, in exactly this form, and write nothing after it. You may say why before.
- Give every required parameter. Write text as it is, and any other value as JSON.
- The result comes in the next message, as EXECUTION RESULT of [name_of_the_function].
- Where no function helps, answer in plain words, and do not speak of functions.

{functions}
"""


async def through_prompt(complete: Complete, request: Request, on_text: OnText) -> Completion:
    """The answer of a model that is told of its tools in the prompt and calls them in its text.

    Of a call that is being written nothing is shown.
    """
    tell = _Telling(on_text)
    answer = await complete(_asked(request), tell)
    heard = _heard(answer, request.tools)
    text = text_of(part for part in heard.message.content if isinstance(part, TextContent))
    if text and text != tell.told:
        on_text(text)
    return heard


class _Telling:
    """Passes a growing text on as far as it is said, and only when that grew."""

    def __init__(self, on_text: OnText) -> None:
        self.told = ""
        self._on_text = on_text

    def __call__(self, text: str) -> None:
        said = said_before(text)
        if said != self.told:
            self.told = said
            self._on_text(said)


def _asked(request: Request) -> Request:
    messages = list(_written(request.messages))
    if not request.tools:
        return replace(request, messages=messages)
    functions = describe(tool["function"] for tool in request.tools)
    manual = MANUAL.format(functions=functions).strip()
    return replace(request, messages=_instructed(messages, manual), tools=(), stop=(STOP,))


def _instructed(messages: Sequence[Message], manual: str) -> list[Message]:
    """The messages with the manual in the part of the system message that never changes."""
    if not messages or messages[0].get("role") != "system":
        return [{"role": "system", "content": manual}, *messages]
    system = messages[0]
    content = system["content"]
    if isinstance(content, str):
        content = f"{content}\n\n{manual}"
    else:
        content = [{**content[0], "text": f"{content[0]['text']}\n\n{manual}"}, *content[1:]]
    return [{**system, "content": content}, *messages[1:]]


def _written(messages: Sequence[Message]) -> Iterator[Message]:
    """The history as such a model would have written it: call by call, each with its result."""
    results = {each["tool_call_id"]: each for each in messages if each.get("role") == "tool"}
    for message in messages:
        if message.get("role") == "tool":
            continue
        calls = message.get("tool_calls") or ()
        if not calls:
            yield message
        for nth, call in enumerate(calls):
            yield _call(message, call) if nth == 0 else _call({"role": "assistant"}, call)
            if call["id"] in results:
                yield _result(results[call["id"]])


def _call(message: Message, call: Mapping[str, Any]) -> Message:
    """What was said before a call, and the call."""
    function = call["function"]
    text = write(function["name"], function["arguments"])
    said = f"{message.get('content') or ''}\n\n{text}".lstrip()
    return {**{key: it for key, it in message.items() if key != "tool_calls"}, "content": said}


def _result(message: Message) -> Message:
    heading = f"EXECUTION RESULT of [{message.get('name') or 'function'}]:"
    content = message["content"]
    if isinstance(content, str):
        return {"role": "user", "content": f"{heading}\n{content}"}
    return {"role": "user", "content": [{"type": "text", "text": heading}, *content]}


def _heard(answer: Completion, tools: Sequence[Mapping[str, Any]]) -> Completion:
    """The answer with the call that is in its text, if one is."""
    message = answer.message
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools}
    text = text_of(part for part in message.content if isinstance(part, TextContent))
    cut = answer.finish_reason == "length"
    call = None if message.tool_calls or not tools else read(text, schemas, cut=cut)
    if call is None:
        return answer
    made = MessageToolCall(id=f"call_{uuid4().hex}", name=call.name, arguments=call.arguments)
    content = (TextContent(text=call.said),) if call.said else ()
    changed = message.model_copy(update={"content": content, "tool_calls": (made,)})
    reason = "length" if cut else "tool_calls"
    return answer.model_copy(update={"message": changed, "finish_reason": reason})
