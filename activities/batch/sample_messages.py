"""Writing the messages of a sample into its conversation."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from perdure.activities.support.resources import Resources
from perdure.activities.support.step import now
from perdure.activities.support.writer import Writer
from perdure.activities.workspace.recall import record_recall
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
    messages = [message for message in sample.input if message.role != "system"]
    if turn > 0:
        messages = [Message(role="user", content=(TextContent(text=sample.turns[turn - 1]),))]
    for nth, message in enumerate(messages):
        is_last = nth == len(messages) - 1  # the user's, which names the turn
        event = MessageEvent(
            timestamp=now(),
            source="user" if message.role == "user" else "agent",
            llm_message=message,
            message_id=f"{TURN_ID_PREFIX}{turn}" if is_last else None,
        )
        await writer.write(f"turn {turn} {nth}", event)
        if message.role == "user":
            text, part = join_text(message.content), f"turn {turn} recall {nth}"
            skills = await record_recall(resources, writer, part, text, spec, skills)
