"""Skills: knowledge in markdown files, and what calls each of them up."""

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, NamedTuple

from agent import front_matter
from events.base import Frozen

MOST_TRIGGERS = 256
"""Keywords of one skill, and its globs with every `{a,b}` written out."""

LONGEST_NAME = 128
LONGEST_DESCRIPTION = 1024

# Letters of the scripts that put spaces between words. In all others a keyword is found anywhere.
WORD = "0-9A-Za-z_\u00aa-\u1fff"

_BRACES = re.compile(r"\{([^{}]*)\}")
_COMMA = re.compile(r",(?![^{}]*\})")


class BadSkill(ValueError):
    """Why a file is not a skill, as the rest of a sentence about it."""


class Skill(Frozen):
    """Something to know in some situations: always, at a keyword, or where a file is touched.

    A `listed` skill is offered by name and description, and the agent reads it when it needs to.
    `location` is where its tools find the file; None where they cannot reach it.
    """

    name: str
    content: str
    description: str = ""
    keywords: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Globs; `**` is any number of directories, and one without a slash fits in any directory."""
    always: bool = False
    listed: bool = False
    location: str | None = None


class Match(NamedTuple):
    """A skill, and the keyword or path that called it up."""

    skill: Skill
    trigger: str


def skill_from(
    text: str, name: str, location: str | None = None, *, agent_skill: bool = False
) -> Skill:
    """The skill that a file holds, in the dialect of OpenHands, AgentSkills or Cursor.

    `name` is the file's, for one that gives itself none; `agent_skill` says that it is a
    `SKILL.md`, which is listed where nothing else calls it up. Any other file without a trigger is
    always on. Every skill answers to `/name`, and one that is listed out of the agent's reach to
    its bare name; one that only people may start is not listed. Raises BadSkill.
    """
    try:
        fields, body = front_matter.split(text)
    except ValueError as error:
        raise BadSkill(str(error)) from error
    if not body.strip():
        raise BadSkill("it says nothing")
    name = _line(fields.get("name"), LONGEST_NAME) or name
    keywords = _texts(fields, "triggers", "keywords", "keyword")
    paths = _globs(_texts(fields, "paths", "path", "globs"))
    task = "inputs" in fields or fields.get("type") == "task"
    waits = bool(keywords or paths or task)
    by_default = not waits and (not agent_skill or fields.get("type") == "repo")
    always = _flag(fields, "always", "alwaysApply", default=by_default)
    hidden = _flag(fields, "disable-model-invocation", default=False)
    listed = not (always or hidden) and (agent_skill or not waits)
    calls = (f"/{name}", name) if listed and location is None else (f"/{name}",)
    return Skill(
        name=name,
        content=body.strip() + _wanted(fields.get("inputs")),
        description=_line(fields.get("description"), LONGEST_DESCRIPTION) or _first_line(body),
        keywords=tuple(dict.fromkeys((*keywords, *calls))),
        paths=paths,
        always=always,
        listed=listed,
        location=location,
    )


def _line(value: Any, longest: int) -> str:
    """On one line; nothing where it is no text that can be stored."""
    if not isinstance(value, str):
        return ""
    storable = value.encode(errors="replace").decode()
    return " ".join(storable.replace("\0", " ").split())[:longest]


def _first_line(body: str) -> str:
    lines = (line.strip() for line in body.splitlines())
    return _line(next((line for line in lines if line and line[0] != "#"), ""), 200)


def _texts(fields: dict[str, Any], *names: str) -> tuple[str, ...]:
    """What fields list, or say between commas."""
    values = [value for name in names for value in _listed(fields.get(name))]
    if len(values) > MOST_TRIGGERS:
        raise BadSkill(f"it names over {MOST_TRIGGERS} {names[0]}")
    return tuple(filter(None, (_line(value, LONGEST_DESCRIPTION) for value in values)))


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        return _COMMA.split(value)
    return value if isinstance(value, list) else []


def _flag(fields: dict[str, Any], *names: str, default: bool) -> bool:
    # Only texts: written out, a list that names another one many times has no end.
    given = (fields.get(name) for name in names)
    said = [one.lower() for one in given if isinstance(one, str) and one]
    return any(one in ("true", "yes", "on") for one in said) if said else default


def _wanted(inputs: Any) -> str:
    """What a task has to be told, for the agent to ask for."""
    given = inputs if isinstance(inputs, list) else []
    rows = [
        f"* {name}: {_line(one.get('description'), LONGEST_DESCRIPTION)}".removesuffix(": ")
        for one in given
        if isinstance(one, dict) and (name := _line(one.get("name"), LONGEST_NAME))
    ]
    if not rows:
        return ""
    return "\n\nAsk the user for what the message does not say of these:\n" + "\n".join(rows)


# What calls a skill up.


def knowledge(text: str, skills: Iterable[Skill], activated: Collection[str]) -> list[Match]:
    """The skills that a message calls up by a keyword, and that were not called up before."""
    found = ((skill, _said(text, skill.keywords)) for skill in skills)
    return [Match(skill, said) for skill, said in found if said and skill.name not in activated]


def for_path(path: str, skills: Iterable[Skill], activated: Collection[str]) -> list[Match]:
    """The skills for a file, named by its path in the workspace, that are new to the agent."""
    return [
        Match(skill, path)
        for skill in skills
        if skill.name not in activated and any(matches(glob, path) for glob in skill.paths)
    ]


def _said(text: str, keywords: Iterable[str]) -> str | None:
    return next((one for one in keywords if _pattern(one).search(text)), None)


@lru_cache(maxsize=4096)
def _pattern(keyword: str) -> re.Pattern[str]:
    """Whole words, in any case and with any space between them.

    A command (`/deploy`) is not a part of a path or of a longer command.
    """
    words = r"\s+".join(map(re.escape, keyword.split()))
    if keyword.startswith("/"):
        return re.compile(rf"(?<![{WORD}/.:]){words}(?![{WORD}/-]|\.[{WORD}])", re.IGNORECASE)
    before = rf"(?<![{WORD}])" if re.match(f"[{WORD}]", keyword) else ""
    after = rf"(?![{WORD}])" if re.match(f"[{WORD}]", keyword[-1]) else ""
    return re.compile(f"{before}{words}{after}", re.IGNORECASE)


def matches(glob: str, path: str) -> bool:
    """Whether a glob fits a path; in a time that no glob can make long."""
    parts = _parts(glob)
    reached = _skipping(parts, {0})
    for name in path.split("/"):
        here = (at for at in reached if at < len(parts))
        passed = {
            at if parts[at] == "**" else at + 1
            for at in here
            if parts[at] == "**" or fnmatchcase(name, parts[at])
        }
        reached = _skipping(parts, passed)
    return len(parts) in reached


def _parts(glob: str) -> list[str]:
    glob = glob.removeprefix("./")
    if glob.endswith("/"):
        glob += "**"
    parts = glob.strip("/").split("/")
    return parts if "/" in glob else ["**", *parts]


def _skipping(parts: list[str], reached: set[int]) -> set[int]:
    """Where one may also stand: `**` may be no directory at all."""
    for at in range(len(parts)):
        if at in reached and parts[at] == "**":
            reached.add(at + 1)
    return reached


def _globs(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """With every `{a,b}` written out."""
    done: list[str] = []
    left = list(patterns)
    while left:
        if len(done) + len(left) > MOST_TRIGGERS:
            raise BadSkill(f"it names over {MOST_TRIGGERS} paths")
        one = left.pop()
        if (braces := _BRACES.search(one)) is None:
            done.append(one)
        else:
            head, tail = one[: braces.start()], one[braces.end() :]
            left += [head + choice.strip() + tail for choice in braces[1].split(",")]
    return tuple(done)
