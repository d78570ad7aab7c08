"""The `state` tool, by which an agent reads and changes the session state."""

import json
from typing import Any, Literal

from pydantic import Field, JsonValue

from perdure.agent.loop.scopes import parse_key
from perdure.agent.spec import STATE_TOOL
from perdure.events.actions import MCPToolAction
from perdure.events.content import TextContent, ToolAnnotations, ToolDefinition
from perdure.events.observations import MCPToolObservation
from perdure.tools.arguments import Arguments, json_schema, validate_arguments
from perdure.tools.state import SessionState
from perdure.tools.tool import Context, Tool, ToolFailed

MAX_TEXT_CHARS = 20_000
"""Length limit of what `get` returns."""

DESCRIPTION = """\
Read and change the state of this conversation: named values, which outlast your view of it, and \
which people and programs read and change too.

* `get` returns the value of `key`; without a key, all values.
* `set` gives `key` the value `value`, which may be any JSON; `delete` removes it.
* A key that begins with `user:` belongs to the user, and one with `app:` to all users: other \
conversations change these as well. To replace or delete such a value, say in `before` which value \
you have seen. If it is another one by now, nothing is changed, and you are told.

Note what a later turn needs (a decision, a preference, where you are), and nothing that the files \
say. It is no place for secrets.
"""


class StateArguments(Arguments):
    command: Literal["get", "set", "delete"]
    key: str | None = Field(default=None, description="The name of the value.")
    value: JsonValue = Field(default=None, description="For `set`: the new value.")
    before: JsonValue = Field(
        default=None, description="The value of a `user:` or `app:` key that you have seen."
    )


def parse(arguments: dict[str, Any]) -> MCPToolAction:
    values = validate_arguments(StateArguments, arguments)
    if values.command != "get" and values.key is None:
        raise ValueError(f"`key` is missing: `{values.command}` needs it.")
    if values.command == "set" and values.value is None:
        raise ValueError("`value` is missing: `set` needs one; `delete` removes a value.")
    return MCPToolAction(data=values.model_dump(exclude_unset=True))


async def run(action: MCPToolAction, context: Context) -> MCPToolObservation:
    values = StateArguments.model_validate(action.data)
    try:
        text = await _run(values, context.state)
    except (ValueError, PermissionError) as error:
        raise ToolFailed(str(error)) from error
    return MCPToolObservation(tool_name=STATE_TOOL, content=(TextContent(text=text),))


async def _run(values: StateArguments, state: SessionState) -> str:
    key = values.key
    if key is None:
        return _show(await state.all())
    now = await state.get(key)
    if values.command == "get":
        return "There is no such value." if now is None else _show(now)
    if parse_key(key).scope != "own" and now is not None and now != values.before:
        raise ToolFailed(
            f"{key} is {_show(now)}, and `before` is not: look whether your change still fits, and "
            "call again with that as `before`."
        )
    await state.set(key, values.value if values.command == "set" else None)
    return f"{key} is {'set' if values.command == 'set' else 'deleted'}."


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return f"{text[:MAX_TEXT_CHARS]}… [cut: {len(text):,} characters; ask for one key]"


STATE = Tool(
    definition=ToolDefinition(
        name=STATE_TOOL,
        description=DESCRIPTION,
        parameters=json_schema(StateArguments),
        annotations=ToolAnnotations(
            title="State", destructiveHint=False, idempotentHint=True, openWorldHint=False
        ),
    ),
    parse=parse,
    run=run,
    resources=lambda _: ("session_state",),
)
