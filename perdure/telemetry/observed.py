"""A model and a store that note what is asked of them, and how long it takes."""

import time
from collections.abc import Callable

from perdure.agent.calls.completion import Completion
from perdure.models.model import Model, ModelError, OnText, Request
from perdure.storage.errors import StoreError
from perdure.storage.store import Store
from perdure.telemetry.record import Append, ModelCall, current_record

EVENTS = "/events/"
"""The folder of a log's events, in the key of each."""


class ObservedModel:
    """A model whose requests the step that makes them has on record; `observe` is told of each."""

    def __init__(self, model: Model, observe: Callable[[ModelCall], None]) -> None:
        self._model = model
        self._observe = observe

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        begin, first_text = time.time_ns(), None

        def note_text(text: str) -> None:
            nonlocal first_text
            if first_text is None and text:
                first_text = time.time_ns()
            on_text(text)

        try:
            completion = await self._model.complete(request, note_text)
        except ModelError as error:
            self._note(ModelCall(request, begin, first_text, time.time_ns(), error=error.code))
            raise
        self._note(ModelCall(request, begin, first_text, time.time_ns(), completion))
        return completion

    def _note(self, call: ModelCall) -> None:
        if (record := current_record()) is not None:
            record.calls.append(call)
        self._observe(call)


class ObservedStore:
    """A store of which the step that writes an event has it on record; `observe` is told of each.

    An event that was there already, as that of an earlier attempt, is none that was written.
    """

    def __init__(self, store: Store, observe: Callable[[Append], None]) -> None:
        self._store = store
        self._observe = observe
        self.read, self.replace, self.delete = store.read, store.replace, store.delete
        self.read_version, self.replace_version = store.read_version, store.replace_version
        self.folders, self.list, self.close = store.folders, store.list, store.close

    async def create(self, key: str, body: bytes) -> bool:
        if EVENTS not in key:
            return await self._store.create(key, body)
        begin = time.time_ns()
        try:
            created = await self._store.create(key, body)
        except StoreError as error:
            self._observe(Append(key, begin, time.time_ns(), type(error).__name__))
            raise
        if created:
            append = Append(key, begin, time.time_ns())
            if (record := current_record()) is not None:
                record.appends.append(append)
            self._observe(append)
        return created
