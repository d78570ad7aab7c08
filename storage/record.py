"""A completion as it lies in the store."""

import json

from agent.completion import Completion
from events.base import Frozen
from events.entry import Origin


class Record(Frozen):
    """An answer of a model and the step that asked for it."""

    origin: Origin
    completion: Completion

    def body(self) -> bytes:
        return json.dumps(self.model_dump(mode="json", exclude_none=True)).encode()
