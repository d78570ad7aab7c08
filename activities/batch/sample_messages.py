"""Writing the messages of a sample into its conversation."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from perdure.activities.support.resources import Resources
from perdure.activities.support.step import now
from perdure.activities.support.writer import Writer
from perdure.activities.workspace.recall import recall_for_message
from perdure.agent.loop.sample_steps import TURN_ID_PREFIX
from perdure.agent.spec import Agent
from perdure.evaluation.sample import Sample
from perdure.evaluation.spec import BatchSpec, agent_with_limits
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.content import Message, TextContent, join_text
from perdure.events.messages import MessageEvent


def build_sample_spec(batch: BatchSpec, sample: Sample) -> Agent:
    """Build the spec of a sample: the batch's agent with a deadline and the sample's prompt.

    System messages of a sample follow the agent's own prompt, or replace the default prompt.
    """
    limit = batch.limits.time
    deadline = None
    if limit is not None:
        deadline = (datetime.now(UTC) + timedelta(seconds=limit)).strftime(TIMESTAMP_FORMAT)
    spec = agent_with_limits(batch, deadline)
    texts = [join_text(message.content) for message in sample.input if message.role == "system"]
    if not texts:
        return spec
    prompt = "\n\n".join(filter(None, (spec.system_prompt, *texts)))
    return spec.model_copy(update={"system_prompt": prompt})


async def write_turn(
    resources: Resources,
    writer: Writer,
    sample: Sample,
    turn: int,
    spec: Agent,
    skills: Sequence[str] | None,
) -> None:
    """Write the messages of the sample's turn, each followed by what it recalls."""
    workspace = resources.workspace(spec, writer.log.conversation_id)
    for nth, event in enumerate(_turn_events(sample, turn)):
        await writer.write(f"turn {turn} {nth}", event)
        if event.source == "user":
            text = join_text(event.llm_message.content)
            recalled = await recall_for_message(skills is None, text, spec, workspace, skills or ())
            skills = (*(skills or ()), *(recalled.skills if recalled else ()))
            if recalled is not None:
                await writer.write(f"turn {turn} recall {nth}", recalled)


def _turn_events(sample: Sample, turn: int) -> Iterator[MessageEvent]:
    """Yield the messages of a turn; the last is the user's, and names the turn."""
    messages = _turn_messages(sample, turn)
    for nth, message in enumerate(messages):
        last = nth == len(messages) - 1
        yield MessageEvent(
            timestamp=now(),
            source="user" if message.role == "user" else "agent",
            llm_message=message,
            message_id=f"{TURN_ID_PREFIX}{turn}" if last else None,
        )


def _turn_messages(sample: Sample, turn: int) -> list[Message]:
    if turn == 0:
        return [message for message in sample.input if message.role != "system"]
    return [Message(role="user", content=(TextContent(text=sample.turns[turn - 1]),))]
