"""What a message or a file calls up, as the agent is shown it: never more than it can carry."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import accumulate, takewhile
from typing import NamedTuple

from agent.skills import Match, Skill
from events.base import Frozen

LONGEST_PART = 16 * 1024
LONGEST = 48 * 1024
"""Bytes of one recall; what is left out is named, with the place where it can be read."""

LONGEST_OFFER = 12 * 1024
"""Characters of the list of skills."""

MOST_NAMED = 50
"""Names in a note."""

OFFER = (
    "Skills for certain tasks. Before a task that one of them is for, read the file at its "
    "location; one without a location is shown to you once the user names it."
)

_WORTH_SHOWING = 1024
_NOTES = 4 * 1024


class Facts(Frozen):
    """What there is to know of a workspace at first sight; `more` entries are not among these."""

    directory: str
    system: str
    day: str
    """In UTC, such as `2026-03-01`."""
    entries: tuple[str, ...] = ()
    more: int = 0
    git: str | None = None


class Instructions(Frozen):
    """A file of the workspace that tells an agent about it; a long one is cut off."""

    name: str
    text: str


class Recalled(Frozen):
    """`skills` are those which the content holds."""

    skills: tuple[str, ...] = ()
    content: str = ""


class _Part(NamedTuple):
    tag: str
    label: str
    body: str
    location: str | None = None
    skill: str | None = None


def workspace_context(
    facts: Facts | None,
    instructions: Sequence[Instructions],
    skills: Sequence[Skill],
    called: Sequence[Match],
    problems: Sequence[str],
) -> Recalled:
    """What a conversation begins with; the shortest and the most to the point come first."""
    always = [Match(skill, "") for skill in skills if skill.always]
    named = {match.skill.name for match in called}
    parts = [
        *([_Part("workspace", "", _facts(facts))] if facts else []),
        *_offered(skill for skill in skills if skill.listed and skill.name not in named),
        *(_skill(match) for match in called if not match.skill.always),
        *(_instructions(one) for one in instructions),
        *(_skill(match) for match in always),
        *_problems(problems),
    ]
    return _fitted(parts)


def knowledge_context(called: Sequence[Match]) -> Recalled:
    """What a message or a file calls up later on."""
    return _fitted([_skill(match) for match in called])


def _facts(facts: Facts) -> str:
    rows = [
        f"Working directory: {facts.directory}",
        f"System: {facts.system}",
        f"Today: {facts.day} (UTC)",
    ]
    if facts.git:
        rows.append(f"Git: {facts.git}")
    if facts.entries:
        more = f" and {facts.more:,} more" if facts.more else ""
        rows.append(f"In it: {', '.join(facts.entries)}{more}")
    return "\n".join(rows)


def _offered(skills: Iterable[Skill]) -> list[_Part]:
    rows = [_offer(skill) for skill in skills]
    if not rows:
        return []
    fitting = len(list(takewhile(lambda size: size <= LONGEST_OFFER, accumulate(map(len, rows)))))
    shown = rows[:fitting]
    if more := len(rows) - fitting:
        shown.append(f"[{more:,} more are not listed]")
    return [_Part("available_skills", "", "\n".join([OFFER, *shown]))]


def _offer(skill: Skill) -> str:
    where = f"<location>{escape(skill.location)}</location>" if skill.location else ""
    told = f"<description>{escape(skill.description)}</description>"
    return f"<skill><name>{escape(skill.name)}</name>{told}{where}</skill>"


def _skill(match: Match) -> _Part:
    skill, trigger = match
    label = f' name="{escape(skill.name)}"'
    if skill.location:
        label += f' location="{escape(skill.location)}"'
    because = f"Shown because of `{trigger}`; it may or may not be to the point.\n\n"
    body = (because if trigger else "") + skill.content
    return _Part("skill", label, body, skill.location, skill.name)


def _instructions(one: Instructions) -> _Part:
    return _Part("instructions", f' file="{escape(one.name)}"', one.text, one.name)


def _problems(problems: Sequence[str]) -> list[_Part]:
    if not problems:
        return []
    rows = [f"* {problem}" for problem in problems[:MOST_NAMED]]
    head = "These skills could not be read. Tell the user where it matters."
    return [_Part("unreadable_skills", "", "\n".join([head, *rows]))]


def _fitted(parts: Sequence[_Part]) -> Recalled:
    """As many as there is room for; the first that is too long is cut, and the others named."""
    room = LONGEST - _NOTES
    shown: list[str] = []
    skills: list[str] = []
    missing: list[_Part] = []
    for part in parts:
        frame = len(_framed(part, "").encode())
        body = _cut(part, min(LONGEST_PART, room - frame))
        if body is None:
            missing.append(part)
            continue
        shown.append(_framed(part, body))
        room -= frame + len(body.encode())
        skills += [part.skill] if part.skill else []
    if missing:
        shown.append(_left_out(missing))
    return Recalled(skills=tuple(skills), content="\n\n".join(shown))


def _framed(part: _Part, body: str) -> str:
    return f"<{part.tag}{part.label}>\n{body}\n</{part.tag}>"


def _cut(part: _Part, room: int) -> str | None:
    """What fits of it; None where that is not worth showing."""
    raw = part.body.encode()
    if len(raw) <= room:
        return part.body
    where = f": the rest is in `{part.location}`" if part.location else ""
    note = f"\n[Cut off here{where}]"
    kept = room - len(note.encode())
    return raw[:kept].decode(errors="ignore") + note if kept >= _WORTH_SHOWING else None


def _left_out(missing: Sequence[_Part]) -> str:
    names = [part.location or part.skill or part.tag for part in missing]
    note = f"[Left out, as there is no room for more: {', '.join(names[:MOST_NAMED])}"
    note = note.encode()[: _NOTES // 2].decode(errors="ignore")
    return f"{note}. Read what you need.]"
