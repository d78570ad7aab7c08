"""All that the agents of a discussion are told, in plain words."""

import json
from collections.abc import Sequence

from perdure.agent.discussion.spec import DiscussionSpec, Phase
from perdure.events.discussion import AgentVisibleEvent

PERSONA = """\
You take part in a discussion as {name}. The topic: {topic}

{persona}The others are {others}. A moderator decides who speaks. You see what is said in a shared
log, as JSON, one event a line. The others see nothing of you but what you say there: your notes,
your tools and your thoughts are your own. Say what you think yourself, answer what others have
said, and do not speak for them.\
"""

MODERATOR_PERSONA = """\
You moderate a discussion and have no opinion of your own. The topic: {topic}

{persona}Those who discuss are {others}. You see what they say in a shared log, as JSON, one event a
line.\
"""

NEWS = "New in the shared log:\n{events}\n\n"
OMITTED = "({count} older events are left out.)\n"
NO_NEWS = "Nothing is new in the shared log.\n\n"
PHASE = "This is the phase “{phase}”, round {round} of {rounds} at most. {instructions}\n\n"

INTENT = """\
Do you want to speak in this round? Answer with one line of JSON and nothing else:
{"speak": true, "urgency": 0 to 10, "line": "what you want to say, in one sentence"}
or {"speak": false} if you have nothing to add or agree with what is there.\
"""

SPEECH = """\
The moderator has given you the floor. Give your speech: plain text, as you would say it to the
others. Only your last answer is heard.\
"""

VOTE = """\
Vote on this question: {question}
Answer with one line of JSON and nothing else:
{{"ballot": one of {options}, "reason": "one sentence"}}\
"""

GRANTS = """\
These want to speak, the most urgent first:
{intents}

Give the floor to {most} of them at most, in the order in which they should speak. Answer with one
line of JSON and nothing else: {{"grant": ["name", …], "consensus": true or false}}, where consensus
says whether the discussion of this phase has come to an agreement.\
"""

SUMMARY = """\
The phase “{phase}” is over. Sum it up for those who go on from here and will not see the single
speeches any more: what was agreed on, where they differ and why, and what is open. Plain text.\
"""


def agent_prompt(spec: DiscussionSpec, name: str, persona: str) -> str:
    """Return what an agent is told about itself."""
    others = ", ".join(agent.id for agent in spec.agents if agent.id != name) or "nobody yet"
    return PERSONA.format(name=name, topic=spec.topic, persona=_paragraph(persona), others=others)


def moderator_prompt(spec: DiscussionSpec) -> str:
    """Return what the moderator's model is told about itself."""
    names = ", ".join(agent.id for agent in spec.agents)
    persona = _paragraph(spec.moderator.persona)
    return MODERATOR_PERSONA.format(topic=spec.topic, persona=persona, others=names)


def news(events: Sequence[AgentVisibleEvent], omitted: int = 0) -> str:
    """Write events for an agent, one a line."""
    if not events:
        return NO_NEWS
    lines = [
        json.dumps(event.model_dump(), ensure_ascii=False, separators=(",", ":"))
        for event in events
    ]
    head = OMITTED.format(count=omitted) if omitted else ""
    return NEWS.format(events=head + "\n".join(lines))


def phase_line(phase: Phase, round_: int) -> str:
    return PHASE.format(
        phase=phase.name, round=round_, rounds=phase.rounds, instructions=phase.instructions
    ).replace(" \n", "\n")


def vote_request(question: str, options: Sequence[str]) -> str:
    return VOTE.format(question=question, options=json.dumps(list(options), ensure_ascii=False))


def grants_request(intents: Sequence[tuple[str, int, str]], most: int) -> str:
    """Ask the moderator; an intent has a speaker, an urgency and a line."""
    lines = [f"{speaker} (urgency {urgency}): {line}" for speaker, urgency, line in intents]
    return GRANTS.format(intents="\n".join(lines), most=most)


def _paragraph(text: str) -> str:
    return f"{text.strip()}\n\n" if text.strip() else ""
