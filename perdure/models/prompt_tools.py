"""Tool calling through the prompt, for models without native tool calling."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias
from uuid import uuid4

from perdure.agent.calls.completion import Completion
from perdure.events.content import MessageToolCall, TextContent, join_text
from perdure.models.model import Complete, OnText, Request
from perdure.models.prompt_tool_parser import (
    STOP_SEQUENCE,
    describe_tools,
    format_call,
    parse_call,
    text_before_call,
)

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


async def complete_with_prompt_tools(
    complete: Complete, request: Request, on_text: OnText
) -> Completion:
    """Describe the tools in the prompt, and parse the tool call from the text of the answer.

    `on_text` receives nothing of the call itself.
    """
    shown = ""

    def show(text: str) -> None:
        nonlocal shown
        if text != shown:
            shown = text
            on_text(text)

    prompt = _add_tools_to_prompt(request)
    completion = await complete(prompt, lambda text: show(text_before_call(text)))
    answer = _extract_call(completion, request.tools)
    if text := join_text(answer.message.content):
        show(text)
    return answer


def _add_tools_to_prompt(request: Request) -> Request:
    messages = list(_rewrite_calls(request.messages))
    if not request.tools:
        return replace(request, messages=messages)
    functions = describe_tools(tool["function"] for tool in request.tools)
    manual = MANUAL.format(functions=functions).strip()
    return replace(request, messages=_add_manual(messages, manual), tools=(), stop=(STOP_SEQUENCE,))


def _add_manual(messages: Sequence[Message], manual: str) -> list[Message]:
    """Add the manual to the first part of the system message, which a prompt cache can keep."""
    if not messages or messages[0].get("role") != "system":
        return [{"role": "system", "content": manual}, *messages]
    system = messages[0]
    content = system["content"]
    if isinstance(content, str):
        content = f"{content}\n\n{manual}"
    else:
        content = [{**content[0], "text": f"{content[0]['text']}\n\n{manual}"}, *content[1:]]
    return [{**system, "content": content}, *messages[1:]]


def _rewrite_calls(messages: Sequence[Message]) -> Iterator[Message]:
    """Rewrite native tool calls as text: one message per call, each followed by its result."""
    answers = (message for message in messages if message.get("role") == "tool")
    results = {message["tool_call_id"]: message for message in answers}
    for message in messages:
        if message.get("role") == "tool":
            continue
        calls = message.get("tool_calls") or ()
        if not calls:
            yield message
        for index, call in enumerate(calls):
            yield _call_message({"role": "assistant"} if index else message, call)
            if call["id"] in results:
                yield _result_message(results[call["id"]])


def _call_message(message: Message, call: Mapping[str, Any]) -> Message:
    function = call["function"]
    text = format_call(function["name"], function["arguments"])
    content = f"{message.get('content') or ''}\n\n{text}".lstrip()
    others = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**others, "content": content}


def _result_message(message: Message) -> Message:
    heading = f"EXECUTION RESULT of [{message.get('name') or 'function'}]:"
    content = message["content"]
    if isinstance(content, str):
        return {"role": "user", "content": f"{heading}\n{content}"}
    return {"role": "user", "content": [{"type": "text", "text": heading}, *content]}


def _extract_call(answer: Completion, tools: Sequence[Mapping[str, Any]]) -> Completion:
    """Convert the call in the text of an answer, if there is one, to a native tool call."""
    message = answer.message
    if message.tool_calls or not tools:
        return answer
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools}
    truncated = answer.finish_reason == "length"
    parsed = parse_call(join_text(message.content), schemas, truncated=truncated)
    if parsed is None:
        return answer
    call = MessageToolCall(id=f"call_{uuid4().hex}", name=parsed.name, arguments=parsed.arguments)
    content = (TextContent(text=parsed.text_before),) if parsed.text_before else ()
    changed = message.model_copy(update={"content": content, "tool_calls": (call,)})
    reason = "length" if truncated else "tool_calls"
    return answer.model_copy(update={"message": changed, "finish_reason": reason})
