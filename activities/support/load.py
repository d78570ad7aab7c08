"""Loading of what steps refer to: an event or a spec by its slot, a batch by its folder."""

from typing import TypeVar

from perdure.activities.support.step import final_failure
from perdure.agent.spec import Agent
from perdure.evaluation.spec import BatchSpec
from perdure.events.base import EventBase
from perdure.events.control import ConversationStateUpdateEvent
from perdure.storage.batches import BatchFolder, BatchRecord
from perdure.storage.cache import Cache
from perdure.storage.log.event_log import EventLog
from perdure.user_modules import USER_MODULES

AnEvent = TypeVar("AnEvent", bound=EventBase)

MAX_CACHED_SPECS = 256
_SPECS: Cache[str, Agent] = Cache(MAX_CACHED_SPECS)
"""The specs used last, by the hash of the entry that holds them."""


async def load_event(log: EventLog, seq: int, kind: type[AnEvent]) -> AnEvent:
    event = (await log.get(seq)).event
    assert isinstance(event, kind), f"slot {seq} holds no {kind.__name__}"
    return event


async def load_spec(log: EventLog, seq: int) -> Agent:
    """Load the spec that the event in slot `seq` put in force.

    References of this step to the user's modules lead to the folder of the spec first.
    """
    entry = await log.get(seq)
    if (spec := _SPECS.get(entry.sha)) is None:
        assert isinstance(entry.event, ConversationStateUpdateEvent), f"slot {seq} holds no spec"
        spec = Agent.model_validate(entry.event.value)
        _SPECS.put(entry.sha, spec)
    USER_MODULES.use_client_folder(spec.code)
    return spec


async def load_batch(folder: BatchFolder) -> BatchSpec:
    """Load a batch as it is now. Raises ApplicationError if there is none."""
    return (await load_record(folder)).spec


async def load_record(folder: BatchFolder) -> BatchRecord:
    """Load the record of a batch. Raises ApplicationError if there is none."""
    record = await folder.load()
    if record is None:
        sentence = (
            f"There is no batch {folder.name!r} in the store of this worker: start it with "
            "`perdure batch run`, with the same store and user as the worker."
        )
        raise final_failure("BatchNotFound", sentence)
    return record
