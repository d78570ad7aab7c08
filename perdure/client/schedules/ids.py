"""Ids of schedules and of what they begin."""

import re

from perdure.api.schedules import SCHEDULE_NAME_PATTERN
from perdure.client.ids import derive_conversation_id
from perdure.errors import Invalid

_NAME = re.compile(SCHEDULE_NAME_PATTERN, re.ASCII)


def check_schedule_name(name: str) -> str:
    """Return the name. Raises Invalid for one that no schedule may have."""
    if not _NAME.fullmatch(name):
        hint = "Use 1 to 64 letters, digits and '.', '_', '-', the first a letter or a digit."
        raise Invalid(f"{name!r} is no name of a schedule.", hint)
    return name


def firing_conversation_id(user_id: str, workflow_id: str) -> str:
    """Return the id of the new conversation that a firing begins."""
    return derive_conversation_id(user_id, workflow_id)
