"""Deviations from OpenAI's responses and chat completions."""

from reliability.deviations.deviation import Deviation, Surface

RESPONSE = "perdure/gateway/openai/projections/response.py"
ITEMS = "perdure/gateway/openai/projections/items.py"
CHAT = "perdure/gateway/openai/projections/chat.py"
STREAMS = "perdure/gateway/openai/streams.py"
ERRORS = "perdure/gateway/openai/errors.py"

OPENAI = Surface(
    "openai",
    ("tests/gateway/openai",),
    (
        Deviation(
            "the output of a function is a text, which breaks a chat of Open WebUI",
            ITEMS,
            '"output": [{"type": "input_text", "text": returned.text}],',
            '"output": returned.text,',
        ),
        Deviation(
            "a named chat of responses is a new conversation with each message",
            "perdure/gateway/openai/routes/responses.py",
            "find = find_chat_place if _is_of_chat(call, body, said) else find_place",
            "find = find_place",
        ),
        Deviation(
            "a sequence number is there twice",
            RESPONSE,
            "        self._number += 1\n",
            "        self._number += kind != 'response.in_progress'\n",
        ),
        Deviation(
            "response.in_progress comes before response.created",
            RESPONSE,
            '("response.created", "response.in_progress")',
            '("response.in_progress", "response.created")',
        ),
        Deviation(
            "a part of the content is done before it is added",
            RESPONSE,
            'self._content("content_part.added", self._message, part=part)',
            'self._content("content_part.done", self._message, part=part)',
        ),
        Deviation(
            "a message is not done at its end",
            RESPONSE,
            "                self._done(index, done),\n            ]\n        return events\n",
            "            ]\n        return events\n",
        ),
        Deviation(
            "a call that was not answered stays open at the end",
            RESPONSE,
            "            events += self._end_call(index, None)\n",
            "            pass\n",
        ),
        Deviation(
            "a cancelled response ends as a completed one",
            RESPONSE,
            'return "cancelled"',
            'return "completed"',
        ),
        Deviation(
            "an error is there although the response has not failed",
            RESPONSE,
            'self._error if self.status == "failed" else None',
            'self._error or {"code": "server_error", "message": "none"}',
        ),
        Deviation(
            "the usage of a response does not add up",
            RESPONSE,
            '"total_tokens": usage.prompt_tokens + usage.completion_tokens',
            '"total_tokens": usage.prompt_tokens',
        ),
        Deviation(
            "the id of an item changes when it is done",
            ITEMS,
            'return {**item, "status": "completed", "content": content, "phase": phase}',
            'return {**item, "id": f"{item[\'id\']}0", "status": "completed", "content": content, '
            '"phase": phase}',
        ),
        Deviation(
            "a call that failed has an output and no error",
            ITEMS,
            "    if returned.is_error:\n",
            "    if False:\n",
        ),
        Deviation(
            "a chunk has a finish reason before the end",
            CHAT,
            'return [self._chunk({"content": text})]',
            'return [self._chunk({"content": text}, "stop")]',
        ),
        Deviation(
            "what tools do is told as tool_calls",
            CHAT,
            'return [self._chunk({"reasoning_content": text})]',
            'return [self._chunk({"tool_calls": text})]',
        ),
        Deviation(
            "the usage comes although it was not asked for",
            CHAT,
            "        if self.include_usage:\n            usage",
            "        if True:\n            usage",
        ),
        Deviation(
            "a stream of chunks does not end with [DONE]",
            STREAMS,
            'DONE = b"data: [DONE]\\n\\n"',
            'DONE = b""',
        ),
        Deviation(
            "an event has no name",
            STREAMS,
            'return b"event: %b\\n%b" % (event["type"].encode(), encode_data(event))',
            "return encode_data(event)",
        ),
        Deviation(
            "an error is not in OpenAI's shape",
            ERRORS,
            '    return {"error": error}\n',
            "    return error\n",
        ),
    ),
)
