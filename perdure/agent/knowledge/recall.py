"""Context recalled by a message or a file, within the size that an agent is shown."""

from bisect import bisect_right
from collections.abc import Sequence
from html import escape
from itertools import accumulate
from typing import NamedTuple

from perdure.agent.knowledge.skills import Match, Skill
from perdure.events.base import Frozen

MAX_PART_BYTES = 16 * 1024
MAX_RECALL_BYTES = 48 * 1024
"""Bytes of one recall; omitted parts are named, with the place where they can be read."""

MAX_OFFER_CHARS = 12 * 1024
"""Characters of the list of skills."""

MAX_LISTED_NAMES = 50

OFFER_HEADING = (
    "Skills for certain tasks. Before a task that one of them is for, read the file at its "
    "location; one without a location is shown to you once the user names it."
)

_MIN_CUT_BYTES = 1024
_NOTE_BYTES = 4 * 1024


class WorkspaceFacts(Frozen):
    """First facts about a workspace; `more_entries` counts those that `entries` leaves out."""

    directory: str
    system: str
    day: str
    """A day in UTC, such as `2026-03-01`."""
    entries: tuple[str, ...] = ()
    more_entries: int = 0
    git: str | None = None


class RepositoryFacts(Frozen):
    """First facts about a repository that was cloned into the workspace."""

    url: str
    directory: str
    branch: str | None
    commit: str
    author: str | None = None


class InstructionFile(Frozen):
    """A file of the workspace that instructs agents; a long one is cut off."""

    name: str
    text: str


class RecalledContext(Frozen):
    """The recalled context, with the names of the skills in it."""

    skills: tuple[str, ...] = ()
    content: str = ""


class _Part(NamedTuple):
    tag: str
    label: str
    body: str
    location: str | None = None
    skill: str | None = None


def recall_workspace(
    facts: WorkspaceFacts | None,
    instructions: Sequence[InstructionFile],
    skills: Sequence[Skill],
    matches: Sequence[Match],
    problems: Sequence[str],
) -> RecalledContext:
    """Recall the context that a conversation begins with, the shortest and most relevant first."""
    matched = {match.skill.name for match in matches}
    offered = [skill for skill in skills if skill.listed and skill.name not in matched]
    parts = [
        *([_Part("workspace", "", _render_facts(facts))] if facts else []),
        *([_Part("available_skills", "", _render_offers(offered))] if offered else []),
        *(_skill_part(match) for match in matches if not match.skill.always),
        *(
            _Part("instructions", f' file="{escape(file.name)}"', file.text, file.name)
            for file in instructions
        ),
        *(_skill_part(Match(skill, "")) for skill in skills if skill.always),
        *([_Part("unreadable_skills", "", _render_problems(problems))] if problems else []),
    ]
    return _join_parts(parts)


def recall_repository(facts: RepositoryFacts, instructions: Sequence[Match]) -> RecalledContext:
    """Recall a repository that was cloned into the workspace, and its instructions."""
    part = _Part("repository", "", _render_repository(facts))
    return _join_parts([part, *map(_skill_part, instructions)])


def recall_skills(matches: Sequence[Match]) -> RecalledContext:
    """Recall the skills that a later message or a file has triggered."""
    return _join_parts([_skill_part(match) for match in matches])


def _render_repository(facts: RepositoryFacts) -> str:
    rows = {
        "Cloned": facts.url,
        "Into": f"{facts.directory}/ of the workspace",
        "Branch or tag": facts.branch,
        "Commit": facts.commit or "none: it is empty",
        "Author of commits": facts.author,
    }
    return "\n".join(f"{name}: {value}" for name, value in rows.items() if value)


def _render_facts(facts: WorkspaceFacts) -> str:
    more = f" and {facts.more_entries:,} more" if facts.more_entries else ""
    rows = {
        "Working directory": facts.directory,
        "System": facts.system,
        "Today": f"{facts.day} (UTC)",
        "Git": facts.git,
        "In it": facts.entries and f"{', '.join(facts.entries)}{more}",
    }
    return "\n".join(f"{name}: {value}" for name, value in rows.items() if value)


def _render_offers(skills: Sequence[Skill]) -> str:
    rows = [_render_offer(skill) for skill in skills]
    count = bisect_right(list(accumulate(map(len, rows))), MAX_OFFER_CHARS)
    more = [f"[{len(rows) - count:,} more are not listed]"] if count < len(rows) else []
    return "\n".join([OFFER_HEADING, *rows[:count], *more])


def _render_offer(skill: Skill) -> str:
    location = f"<location>{escape(skill.location)}</location>" if skill.location else ""
    description = f"<description>{escape(skill.description)}</description>"
    return f"<skill><name>{escape(skill.name)}</name>{description}{location}</skill>"


def _skill_part(match: Match) -> _Part:
    skill, trigger = match
    label = f' name="{escape(skill.name)}"'
    if skill.location:
        label += f' location="{escape(skill.location)}"'
    reason = f"Shown because of `{trigger}`; it may or may not be to the point.\n\n"
    body = (reason if trigger else "") + skill.content
    return _Part("skill", label, body, skill.location, skill.name)


def _render_problems(problems: Sequence[str]) -> str:
    rows = [f"* {problem}" for problem in problems[:MAX_LISTED_NAMES]]
    return "\n".join(["These skills could not be read. Tell the user where it matters.", *rows])


def _join_parts(parts: Sequence[_Part]) -> RecalledContext:
    """Join the parts that fit; parts that are too long are cut, the rest is named."""
    room = MAX_RECALL_BYTES - _NOTE_BYTES
    blocks: list[str] = []
    skills: list[str] = []
    omitted: list[_Part] = []
    for part in parts:
        frame = len(_tag(part, "").encode())
        body = _truncate(part, min(MAX_PART_BYTES, room - frame))
        if body is None:
            omitted.append(part)
            continue
        blocks.append(_tag(part, body))
        room -= frame + len(body.encode())
        skills += [part.skill] if part.skill else []
    if omitted:
        blocks.append(_omission_note(omitted))
    return RecalledContext(skills=tuple(skills), content="\n\n".join(blocks))


def _tag(part: _Part, body: str) -> str:
    return f"<{part.tag}{part.label}>\n{body}\n</{part.tag}>"


def _truncate(part: _Part, room: int) -> str | None:
    """Return the part of the body that fits, or None if that is too little."""
    raw = part.body.encode()
    if len(raw) <= room:
        return part.body
    where = f": the rest is in `{part.location}`" if part.location else ""
    note = f"\n[Cut off here{where}]"
    size = room - len(note.encode())
    return raw[:size].decode(errors="ignore") + note if size >= _MIN_CUT_BYTES else None


def _omission_note(omitted: Sequence[_Part]) -> str:
    names = [part.location or part.skill or part.tag for part in omitted]
    note = f"[Left out, as there is no room for more: {', '.join(names[:MAX_LISTED_NAMES])}"
    note = note.encode()[: _NOTE_BYTES // 2].decode(errors="ignore")
    return f"{note}. Read what you need.]"
