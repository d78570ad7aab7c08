"""What a message or a touched file calls up, read from the worker's files."""

import asyncio
import os
from collections.abc import Collection, Iterable
from itertools import takewhile
from pathlib import Path, PurePosixPath

from activities.skill_files import skills_of
from activities.step import now
from activities.workspace_files import facts_of, instructions_in
from agent.recall import Recalled, knowledge_context, workspace_context
from agent.skills import Match, Skill, for_path, knowledge
from agent.spec import Skills, Spec
from events.messages import RecallEvent

QUERY = 1000
"""Characters of a message that are repeated in what it called up."""

FILE = "file:"


async def on_message(
    first: bool, text: str, spec: Spec, workspace: Path, activated: Collection[str]
) -> RecallEvent | None:
    """What a user's message calls up; the first one of a conversation also the workspace's own.

    `activated` are the skills of earlier recalls. A file that cannot be read is left out, and
    never raises.
    """
    at = now()
    if first:
        found = await asyncio.to_thread(_at_first, text, spec.skills, workspace, at[:10])
    else:
        found = await asyncio.to_thread(_later, text, spec.skills, workspace, activated)
    if not found.content:
        return None
    return RecallEvent(
        timestamp=at,
        recall_type="WORKSPACE_CONTEXT" if first else "KNOWLEDGE",
        query=text[:QUERY],
        skills=found.skills,
        content=found.content,
    )


async def on_path(
    touches: Iterable[str], spec: Spec, workspace: Path, activated: Collection[str]
) -> RecallEvent | None:
    """What the files that an action touches call up: skills, and the instructions beside them."""
    files = [one.removeprefix(FILE) for one in touches if one.startswith(FILE)]
    if not files:
        return None
    found, called = await asyncio.to_thread(_touched, files, spec.skills, workspace, activated)
    if not found.content:
        return None
    return RecallEvent(
        timestamp=now(),
        recall_type="KNOWLEDGE",
        query=", ".join(called)[:QUERY],
        skills=found.skills,
        content=found.content,
    )


def _at_first(text: str, wanted: Skills, workspace: Path, day: str) -> Recalled:
    workspace = workspace.resolve()
    skills, problems = skills_of(wanted, workspace)
    return workspace_context(
        facts_of(workspace, day),
        instructions_in(workspace, workspace, wanted.instructions),
        skills,
        knowledge(text, skills, ()),
        problems,
    )


def _later(text: str, wanted: Skills, workspace: Path, activated: Collection[str]) -> Recalled:
    skills, _ = skills_of(wanted, workspace.resolve())
    return knowledge_context(knowledge(text, skills, activated))


def _touched(
    files: Iterable[str], wanted: Skills, workspace: Path, activated: Collection[str]
) -> tuple[Recalled, list[str]]:
    workspace = workspace.resolve()
    skills, _ = skills_of(wanted, workspace)
    called: dict[str, Match] = {}
    for path in filter(None, (_relative(workspace, file) for file in files)):
        nested = [Match(one, path) for one in _nested(workspace, path, wanted.instructions)]
        for match in (*nested, *for_path(path, skills, activated)):
            if match.skill.name not in activated:
                called.setdefault(match.skill.name, match)
    found = knowledge_context(list(called.values()))
    return found, list(dict.fromkeys(match.trigger for match in called.values()))


def _relative(workspace: Path, file: str) -> str | None:
    """The file by its path in the workspace; None where it is not in it."""
    path = os.path.relpath(os.path.normpath(workspace / file), workspace)
    return None if path == ".." or path.startswith("../") else path


def _nested(workspace: Path, path: str, names: Iterable[str]) -> list[Skill]:
    """The instructions of the folders on the way to a file, each as a skill."""
    ways = (workspace / folder for folder in reversed(PurePosixPath(path).parents[:-1]))
    plain = [name for name in names if "/" not in name and name != PurePosixPath(path).name]
    return [
        Skill(name=one.name, content=one.text, location=one.name)
        for folder in takewhile(os.path.isdir, ways)
        for one in instructions_in(workspace, folder, plain)
    ]
