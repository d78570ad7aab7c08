"""The recorded answers that come before those of a conversation's model."""

from pydantic import ValidationError

from perdure.agent.calls.completion import Completion
from perdure.events.content import Message
from perdure.models.model import ModelRefused, OnText, Request
from perdure.storage.cache import Cache
from perdure.storage.errors import Altered
from perdure.storage.log.event_log import EventLog

MAX_CACHED_RECORDINGS = 32

REPLAYED = "replay"
"""The name under which the usage of recorded answers is counted."""

_ANSWERS: Cache[str, tuple[Message, ...]] = Cache(MAX_CACHED_RECORDINGS)
"""The recordings used last, by their keys, which are hashes of them."""


async def replay_answer(
    log: EventLog, key: str, request: Request, on_text: OnText
) -> Completion | None:
    """Return the recorded answer for a request; None once there are no more.

    Raises ModelRefused if the recording is lost or damaged.
    """
    answers = _ANSWERS.get(key)
    if answers is None:
        answers = await _load_answers(log, key)
        _ANSWERS.put(key, answers)
    if request.number is None or request.number >= len(answers):
        return None
    from perdure.testing.replay import ReplayModel  # reads scripts: few conversations have any

    answer = await ReplayModel(answers).complete(request, on_text)
    usage = answer.usage.model_copy(update={"model": REPLAYED})
    return answer.model_copy(update={"model": REPLAYED, "usage": usage})


async def _load_answers(log: EventLog, key: str) -> tuple[Message, ...]:
    from perdure.testing.replay import RecordedAnswers  # as above

    lost = ModelRefused(
        "model_not_found",
        f"The recording {key} of this conversation is lost: restore it from a backup of the store.",
    )
    try:
        body = await log.read_blob(key)
        if body is None:
            raise lost
        return RecordedAnswers.model_validate_json(body).answers
    except (Altered, ValidationError) as error:
        raise lost from error
