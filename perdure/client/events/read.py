"""Reading events from JSON, also as versions of the OpenHands SDK write them."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from perdure.client.events.spellings import normalize_fields
from perdure.errors import Invalid
from perdure.events.event import AnyEvent, parse_event


def read_event(source: str | bytes | Mapping[str, Any]) -> AnyEvent:
    """Read an event from JSON or its fields; one that no class here can hold is an `UnknownEvent`.

    Accepted are also times in any ISO 8601 form, `activated_microagents`, calls with a nested
    `function`, actions and observations of tools whose classes are not known, and the objects of
    a log with what they have beside the event. Raises Invalid for what is no JSON object.
    """
    if not isinstance(source, Mapping):
        try:
            source = json.loads(source)
        except (ValueError, RecursionError) as error:
            raise Invalid(f"An event is a JSON object, and this is no JSON: {error}.") from error
    if not isinstance(source, Mapping):
        raise Invalid(f"An event is a JSON object, not a {type(source).__name__}.")
    return parse_event(normalize_fields(source))


def read_event_folder(folder: str | Path) -> Iterator[AnyEvent]:
    """Yield the events of a folder `events/` with a file each, in the order of their names.

    A name begins with the event's number: `000042_{id}.json`. Raises Invalid for a file that is no
    event, and NotADirectoryError.
    """
    if not (folder := Path(folder)).is_dir():
        raise NotADirectoryError(folder)
    for path in sorted(folder.glob("*.json")):
        try:
            yield read_event(path.read_bytes())
        except Invalid as error:
            raise Invalid(f"{path.name}: {error}") from error
