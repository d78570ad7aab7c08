"""Recording what people and programs change of the session state."""

from typing import Any

from perdure.activities.support.inbox_events import state_update, to_event
from perdure.activities.support.resources import Resources
from perdure.activities.support.step import now, origin
from perdure.activities.support.writer import Writer
from perdure.agent.loop.inbox import StateNote
from perdure.agent.loop.scopes import parse_key
from perdure.agent.spec import Agent
from perdure.secrets.masking import mask_value
from perdure.storage.errors import Altered
from perdure.storage.shared_values import ANY, StateConflict, write_shared_value
from perdure.tools.state import forbid_app_values


async def record_state_note(
    resources: Resources, writer: Writer, part: str, item: StateNote, spec: Agent
) -> None:
    """Write the shared values of a note, and record what has changed and what was refused.

    A repeat finds what an earlier attempt has written. The store's shared values are masked, as the
    log is, which they are no part of.
    """
    values: dict[str, Any] = mask_value(item.value, resources.secrets_of(writer.log.user_id).mask)
    refusal, written = _check_scopes(resources, writer.log.user_id, values), dict[str, Any]()
    if refusal is None:
        refusal = await _write_shared(writer, part, values, item, written)
    recorded = {**values, **written} if refusal is None else written
    if recorded or refusal is None:
        await writer.write(part, to_event(item.model_copy(update={"value": recorded}), now(), spec))
    if refusal is not None:
        refused = {"note": item.note_id, **refusal}
        await writer.write(f"{part} refused", state_update(now(), "state_refused", refused))


def _check_scopes(
    resources: Resources, user_id: str, values: dict[str, Any]
) -> dict[str, Any] | None:
    keys = [key for key in values if parse_key(key).scope == "app"]
    if not keys or resources.may_write_app(user_id):
        return None
    return {"cause": "forbidden", "keys": keys, "detail": forbid_app_values(user_id)}


async def _write_shared(
    writer: Writer, part: str, values: dict[str, Any], item: StateNote, written: dict[str, Any]
) -> dict[str, Any] | None:
    """Write the shared values into the store, and `written`; return why one was refused."""
    log, own = writer.log, origin(part)
    versions, write_id = item.versions or {}, f"note {own.run} {own.activity}"
    for key, value in values.items():
        if parse_key(key).scope == "own":
            continue
        version = versions.get(key, ANY)
        try:
            written[key] = await write_shared_value(
                log.store, log.user_id, key, value, version, write_id
            )
        except StateConflict as error:
            return {"cause": "conflict", "keys": [key], "detail": str(error)}
        except Altered as error:  # what is there was damaged, and nothing of the log
            return {"cause": "damaged", "keys": [key], "detail": f"{key}: {error}"}
    return None
