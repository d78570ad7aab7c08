"""What a sample says to the agent, as events of its conversation."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from activities.recall import on_message
from activities.step import now
from activities.world import World
from activities.writer import Writer
from agent.spec import Spec
from agent.trying import TURN
from evaluation.sample import Sample
from evaluation.spec import BatchSpec, agent_of
from events.content import Message, TextContent, text_of
from events.messages import MessageEvent

MOMENT = "%Y-%m-%dT%H:%M:%S.%f"


def spec_of(batch: BatchSpec, sample: Sample) -> Spec:
    """The agent of this sample: with the limits of a sample, and what the sample tells of itself.

    System messages of a sample stand behind the prompt of an agent that has its own, and in place
    of the prompt that is every agent's.
    """
    limit = batch.limits.time
    deadline = None
    if limit is not None:
        deadline = (datetime.now(UTC) + timedelta(seconds=limit)).strftime(MOMENT)
    spec = agent_of(batch, deadline)
    told = [text_of(one.content) for one in sample.input if one.role == "system"]
    if not told:
        return spec
    prompt = "\n\n".join(filter(None, (spec.system_prompt, *told)))
    return spec.model_copy(update={"system_prompt": prompt})


async def say(
    world: World,
    writer: Writer,
    sample: Sample,
    turn: int,
    spec: Spec,
    skills: Sequence[str] | None,
) -> None:
    """Record what the sample says in this turn, and what that calls up."""
    place = world.workspace(spec, writer.log.conversation_id)
    for nth, event in enumerate(_events(sample, turn)):
        await writer.write(f"turn {turn} {nth}", event)
        if event.source == "user":
            text = text_of(event.llm_message.content)
            recalled = await on_message(skills is None, text, spec, place, skills or ())
            skills = (*(skills or ()), *(recalled.skills if recalled else ()))
            if recalled is not None:
                await writer.write(f"turn {turn} recall {nth}", recalled)


def _events(sample: Sample, turn: int) -> Iterator[MessageEvent]:
    """The last message of a turn is the user's, and names the turn."""
    messages = _messages(sample, turn)
    for nth, message in enumerate(messages):
        last = nth == len(messages) - 1
        yield MessageEvent(
            timestamp=now(),
            source="user" if message.role == "user" else "agent",
            llm_message=message,
            message_id=f"{TURN}{turn}" if last else None,
        )


def _messages(sample: Sample, turn: int) -> list[Message]:
    if turn == 0:
        return [one for one in sample.input if one.role != "system"]
    return [Message(role="user", content=(TextContent(text=sample.turns[turn - 1]),))]
