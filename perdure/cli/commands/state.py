"""`perdure state`: the values of a conversation, and those that it shares with others."""

import json
from typing import Any

from perdure.cli.arguments import parse_assignment
from perdure.cli.declarations import control
from perdure.cli.environment import connect_client, open_conversation
from perdure.cli.options import Format
from perdure.cli.output import note, show_result
from perdure.errors import Invalid, NotFound
from perdure.storage.noted_values import SessionValues


async def state(options: control.State) -> None:
    changes = _parse_changes(options)
    versions = dict(map(_parse_version, options.version or ()))
    if strays := sorted(versions.keys() - changes.keys()):
        raise Invalid(
            f"--version names {strays[0]}, which is not changed.",
            "Give KEY=VALUE or --delete KEY as well.",
        )
    conversation = open_conversation(await connect_client(), options.conversation_id)
    if changes:
        await conversation.note(state=changes, versions=versions or None)
    elif not await conversation.exists():
        raise NotFound.for_conversation(options.conversation_id)
    remark = f"Changed: {', '.join(changes)}." if changes else ""
    _show(await conversation.read_values(), options, remark)


def _parse_changes(options: control.State) -> dict[str, Any]:
    changes = dict(map(parse_assignment, options.changes or ()))
    for key in options.delete or ():
        if key in changes:
            raise Invalid(f"{key!r} is both set and deleted: do one of them.")
        changes[key] = None
    return changes


def _parse_version(text: str) -> tuple[str, str]:
    key, equals, version = text.partition("=")
    if not (key and equals and version):
        raise Invalid(
            f"{text!r} is no KEY=VERSION.", "`perdure state ID -o json` shows the versions."
        )
    return key, version


def _show(found: SessionValues, options: control.State, remark: str) -> None:
    fields = {
        "conversation_id": options.conversation_id,
        "values": found.values,
        "versions": found.versions,
    }
    lines = [
        f"{key} = {json.dumps(found.values[key], ensure_ascii=False)}"
        for key in sorted(found.values)
    ]
    show_result(fields, options.output, *lines, remark=remark)
    if not lines and options.output is Format.text:
        note("There are no values.")
