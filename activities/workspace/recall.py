"""Recall of skills, instructions and facts for a message or a touched file."""

import asyncio
import os
from collections.abc import Collection, Iterable
from itertools import takewhile
from pathlib import Path, PurePosixPath

from perdure.activities.support.step import now
from perdure.activities.workspace.context_files import collect_facts, read_instructions
from perdure.activities.workspace.skill_files import find_skills
from perdure.agent.knowledge.recall import RecalledContext, recall_skills, recall_workspace
from perdure.agent.knowledge.skills import Match, Skill, skills_for_message, skills_for_path
from perdure.agent.spec import Agent, Skills
from perdure.events.messages import RecallEvent

MAX_QUERY_CHARS = 1000
"""Length limit of the query in a recall event."""

FILE_PREFIX = "file:"


async def recall_for_message(
    first: bool, text: str, spec: Agent, workspace: Path, activated: Collection[str]
) -> RecallEvent | None:
    """Recall what a user's message triggers; the first message also recalls the workspace.

    `activated` names the skills of earlier recalls. Unreadable files are left out.
    """
    at = now()
    if first:
        recalled = await asyncio.to_thread(_first_recall, text, spec.skills, workspace, at[:10])
    else:
        recalled = await asyncio.to_thread(_later_recall, text, spec.skills, workspace, activated)
    if not recalled.content:
        return None
    return RecallEvent(
        timestamp=at,
        recall_type="WORKSPACE_CONTEXT" if first else "KNOWLEDGE",
        query=text[:MAX_QUERY_CHARS],
        skills=recalled.skills,
        content=recalled.content,
    )


async def recall_for_files(
    touches: Iterable[str], spec: Agent, workspace: Path, activated: Collection[str]
) -> RecallEvent | None:
    """Recall the skills and instructions for the files that an action touches."""
    files = [name.removeprefix(FILE_PREFIX) for name in touches if name.startswith(FILE_PREFIX)]
    if not files:
        return None
    recalled, triggers = await asyncio.to_thread(
        _recall_touched, files, spec.skills, workspace, activated
    )
    if not recalled.content:
        return None
    return RecallEvent(
        timestamp=now(),
        recall_type="KNOWLEDGE",
        query=", ".join(triggers)[:MAX_QUERY_CHARS],
        skills=recalled.skills,
        content=recalled.content,
    )


def _first_recall(text: str, settings: Skills, workspace: Path, day: str) -> RecalledContext:
    workspace = workspace.resolve()
    skills, problems = find_skills(settings, workspace)
    return recall_workspace(
        collect_facts(workspace, day),
        read_instructions(workspace, workspace, settings.instructions),
        skills,
        skills_for_message(text, skills, ()),
        problems,
    )


def _later_recall(
    text: str, settings: Skills, workspace: Path, activated: Collection[str]
) -> RecalledContext:
    skills, _ = find_skills(settings, workspace.resolve())
    return recall_skills(skills_for_message(text, skills, activated))


def _recall_touched(
    files: Iterable[str], settings: Skills, workspace: Path, activated: Collection[str]
) -> tuple[RecalledContext, list[str]]:
    workspace = workspace.resolve()
    skills, _ = find_skills(settings, workspace)
    matches: dict[str, Match] = {}
    for path in filter(None, (_relative_path(workspace, file) for file in files)):
        nested = [
            Match(skill, path)
            for skill in _nested_instructions(workspace, path, settings.instructions)
        ]
        for match in (*nested, *skills_for_path(path, skills, activated)):
            if match.skill.name not in activated:
                matches.setdefault(match.skill.name, match)
    recalled = recall_skills(list(matches.values()))
    return recalled, list(dict.fromkeys(match.trigger for match in matches.values()))


def _relative_path(workspace: Path, file: str) -> str | None:
    """Return the path of a file relative to the workspace, None if it is outside."""
    path = os.path.relpath(os.path.normpath(workspace / file), workspace)
    return None if path == ".." or path.startswith("../") else path


def _nested_instructions(workspace: Path, path: str, names: Iterable[str]) -> list[Skill]:
    """Return the instructions of the folders on the way to a file, each as a skill."""
    folders = (workspace / folder for folder in reversed(PurePosixPath(path).parents[:-1]))
    plain = [name for name in names if "/" not in name and name != PurePosixPath(path).name]
    return [
        Skill(name=file.name, content=file.text, location=file.name)
        for folder in takewhile(os.path.isdir, folders)
        for file in read_instructions(workspace, folder, plain)
    ]
