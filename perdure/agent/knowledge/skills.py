"""Skills: knowledge in markdown files, and their triggers."""

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from perdure.events.base import Frozen

MAX_TRIGGERS = 256
"""Keywords of one skill, and its globs with every `{a,b}` expanded."""

MAX_FRONT_MATTER_CHARS = 16 * 1024
"""Characters of a front matter: parsing strangers' YAML takes time."""

MAX_BRACKET_DEPTH = 32
"""Nested brackets: the parser's time grows with the square of their depth."""

MAX_NAME_CHARS = 128
MAX_DESCRIPTION_CHARS = 1024

# Scripts with spaces between words. In all others a keyword matches anywhere.
WORD_CHARS = "0-9A-Za-z_\u00aa-\u1fff"

_HEAD = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED_VALUE = r"""[|>][+-]?|\[[^\[\]]*\]|\{[^{}]*\}|'[^']*'|"[^"]*\""""
_PLAIN_VALUE = re.compile(
    rf"^([ \t]*-[ \t]+|[\w-]+:[ \t]+)(?!(?:{_QUOTED_VALUE})[ \t]*$)(\S.*)$", re.MULTILINE
)
_BRACES = re.compile(r"\{([^{}]*)\}")
_COMMA = re.compile(r",(?![^{}]*\})")


class BadSkill(ValueError):
    """The reason why a file is not a skill, as the rest of a sentence about it."""


class Skill(Frozen):
    """Knowledge for some situations: for all, at a keyword, or for certain files.

    A `listed` skill is offered by name and description, for the agent to read when it needs it.
    `location` is the path of its file for the agent's tools, or None if they cannot reach it.
    """

    name: str
    content: str
    description: str = ""
    keywords: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Globs; `**` matches any number of directories, and a glob without a slash fits in any
    directory.
    """
    always: bool = False
    listed: bool = False
    location: str | None = None


class Match(NamedTuple):
    """A skill, and the keyword or path that triggered it."""

    skill: Skill
    trigger: str


def parse_skill(
    text: str, name: str, location: str | None = None, *, agent_skill: bool = False
) -> Skill:
    """Parse the skill in a file, in the dialect of OpenHands, AgentSkills or Cursor.

    `name` is the default for a skill that names none; an `agent_skill` is a `SKILL.md`, which is
    listed if it has no trigger. Any other file without a trigger is always on. Every skill has the
    keyword `/name`, a listed one out of the agent's reach also its bare name; a skill that only
    people may start is not listed. Raises BadSkill.
    """
    fields, body = split_front_matter(text)
    if not body.strip():
        raise BadSkill("it says nothing")
    name = _one_line(fields.get("name"), MAX_NAME_CHARS) or name
    keywords = _texts(fields, "triggers", "keywords", "keyword")
    paths = _expand_braces(_texts(fields, "paths", "path", "globs"))
    task = "inputs" in fields or fields.get("type") == "task"
    has_trigger = bool(keywords or paths or task)
    by_default = not has_trigger and (not agent_skill or fields.get("type") == "repo")
    always = _flag(fields, "always", "alwaysApply", default=by_default)
    hidden = _flag(fields, "disable-model-invocation", default=False)
    listed = not (always or hidden) and (agent_skill or not has_trigger)
    own_keywords = (f"/{name}", name) if listed and location is None else (f"/{name}",)
    return Skill(
        name=name,
        content=body.strip() + _inputs_note(fields.get("inputs")),
        description=_one_line(fields.get("description"), MAX_DESCRIPTION_CHARS)
        or _first_line(body),
        keywords=tuple(dict.fromkeys((*keywords, *own_keywords))),
        paths=paths,
        always=always,
        listed=listed,
        location=location,
    )


def _one_line(value: Any, max_chars: int) -> str:
    """Return the text on one line; empty for what is no text, or cannot be stored."""
    if not isinstance(value, str):
        return ""
    storable = value.encode(errors="replace").decode()
    return " ".join(storable.replace("\0", " ").split())[:max_chars]


def _first_line(body: str) -> str:
    lines = (line.strip() for line in body.splitlines())
    return _one_line(next((line for line in lines if line and line[0] != "#"), ""), 200)


def _texts(fields: dict[str, Any], *names: str) -> tuple[str, ...]:
    """Return the values of the fields, as lists or separated by commas."""
    values = [value for name in names for value in _as_list(fields.get(name))]
    if len(values) > MAX_TRIGGERS:
        raise BadSkill(f"it names over {MAX_TRIGGERS} {names[0]}")
    return tuple(filter(None, (_one_line(value, MAX_DESCRIPTION_CHARS) for value in values)))


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, str):
        return _COMMA.split(value)
    return value if isinstance(value, list) else []


def _flag(fields: dict[str, Any], *names: str, default: bool) -> bool:
    # Only strings: a nested YAML list with many aliases would expand without end.
    values = (fields.get(name) for name in names)
    texts = [value.lower() for value in values if isinstance(value, str) and value]
    return any(value in ("true", "yes", "on") for value in texts) if texts else default


def _inputs_note(inputs: Any) -> str:
    """List the inputs of a task for the agent to ask for."""
    fields = inputs if isinstance(inputs, list) else []
    rows = [
        f"* {name}: {_one_line(value.get('description'), MAX_DESCRIPTION_CHARS)}".removesuffix(": ")
        for value in fields
        if isinstance(value, dict) and (name := _one_line(value.get("name"), MAX_NAME_CHARS))
    ]
    if not rows:
        return ""
    return "\n\nAsk the user for what the message does not say of these:\n" + "\n".join(rows)


def skills_for_message(
    text: str, skills: Iterable[Skill], activated: Collection[str]
) -> list[Match]:
    """Match the skills whose keywords are in a message and that are not activated yet."""
    matches = []
    for skill in skills:
        present = (key for key in skill.keywords if _keyword_pattern(key).search(text))
        if skill.name not in activated and (key := next(present, None)):
            matches.append(Match(skill, key))
    return matches


def skills_for_path(path: str, skills: Iterable[Skill], activated: Collection[str]) -> list[Match]:
    """Match the skills for a file, by its path in the workspace, that are not activated yet."""
    return [
        Match(skill, path)
        for skill in skills
        if skill.name not in activated and any(glob_matches(glob, path) for glob in skill.paths)
    ]


@lru_cache(maxsize=4096)
def _keyword_pattern(keyword: str) -> re.Pattern[str]:
    """Match whole words, in any case and with any space between them.

    A command (`/deploy`) does not match within a path or a longer command.
    """
    words = r"\s+".join(map(re.escape, keyword.split()))
    if keyword.startswith("/"):
        return re.compile(
            rf"(?<![{WORD_CHARS}/.:]){words}(?![{WORD_CHARS}/-]|\.[{WORD_CHARS}])", re.IGNORECASE
        )
    before = rf"(?<![{WORD_CHARS}])" if re.match(f"[{WORD_CHARS}]", keyword) else ""
    after = rf"(?![{WORD_CHARS}])" if re.match(f"[{WORD_CHARS}]", keyword[-1]) else ""
    return re.compile(f"{before}{words}{after}", re.IGNORECASE)


def glob_matches(glob: str, path: str) -> bool:
    """Match a path against a glob, in time linear in the length of the glob."""
    parts = _glob_parts(glob)
    # For each number of parts, whether so many match the names so far.
    matched = [all(part == "**" for part in parts[:count]) for count in range(len(parts) + 1)]
    for name in path.split("/"):
        row = [False]
        for part, (before, here) in zip(parts, pairwise(matched), strict=True):
            fits = (row[-1] or here) if part == "**" else (before and fnmatchcase(name, part))
            row.append(fits)
        matched = row
    return matched[-1]


def _glob_parts(glob: str) -> list[str]:
    glob = glob.removeprefix("./")
    if glob.endswith("/"):
        glob += "**"
    parts = glob.strip("/").split("/")
    return parts if "/" in glob else ["**", *parts]


def _expand_braces(patterns: tuple[str, ...]) -> tuple[str, ...]:
    expanded: list[str] = []
    remaining = list(patterns)
    while remaining:
        if len(expanded) + len(remaining) > MAX_TRIGGERS:
            raise BadSkill(f"it names over {MAX_TRIGGERS} paths")
        glob = remaining.pop()
        if (braces := _BRACES.search(glob)) is None:
            expanded.append(glob)
        else:
            head, tail = glob[: braces.start()], glob[braces.end() :]
            remaining += [head + choice.strip() + tail for choice in braces[1].split(",")]
    return tuple(expanded)


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields between two lines of dashes at the head, if any, and the text after them.

    Every scalar is a string: a name such as `no` or `1.0` stays as its author wrote it. Raises
    BadSkill.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if (head := _HEAD.match(text)) is None:
        return {}, text
    if len(head[1]) > MAX_FRONT_MATTER_CHARS:
        raise BadSkill(f"its front matter has over {MAX_FRONT_MATTER_CHARS:,} characters")
    if _bracket_depth(head[1]) > MAX_BRACKET_DEPTH:
        raise BadSkill(f"its front matter is over {MAX_BRACKET_DEPTH} brackets deep")
    fields = _parse_fields(head[1])
    return (fields, text[head.end() :]) if isinstance(fields, dict) else ({}, text)


def _bracket_depth(source: str) -> int:
    return max(accumulate((char in "[{") - (char in "]}") for char in source), default=0)


def _parse_fields(source: str) -> Any:
    """Parse the fields, if need be with all plain values in quotes.

    Real files often hold what is not YAML: `globs: *.py`, or a second colon in a sentence.
    """
    try:
        return _load_yaml(source)
    except BadSkill:
        return _load_yaml(_PLAIN_VALUE.sub(_quote_value, source))


def _quote_value(line: re.Match[str]) -> str:
    value = line[2].rstrip().replace("'", "''")
    return f"{line[1]}'{value}'"


def _load_yaml(source: str) -> Any:
    # Slow to load, and few agents have skills; pure, without clock or files: the core may use it.
    import yaml  # type: ignore[import-untyped]

    try:
        return yaml.load(source, Loader=yaml.BaseLoader) or {}
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        problem = getattr(error, "problem", None) or type(error).__name__
        raise BadSkill(f"its front matter is not YAML ({problem})") from error
