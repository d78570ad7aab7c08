"""Recall of skills and instructions for messages and files."""

from pathlib import Path

import pytest

from perdure.activities.workspace.recall import recall_for_files, recall_for_message
from perdure.agent.extensions import Skills
from perdure.agent.spec import Agent, ModelSpec

SPEC = Agent(model=ModelSpec(name="scripted:story.json"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_an_empty_workspace_recalls_nothing(workspace: Path) -> None:
    assert await recall_for_message(True, "hello", SPEC, workspace, ()) is None
    assert await recall_for_message(False, "hello", SPEC, workspace, ()) is None
    assert await recall_for_files(["file:a.py"], SPEC, workspace, ()) is None


async def test_the_first_message_recalls_the_workspace(workspace: Path) -> None:
    put(workspace / "AGENTS.md", "Use tabs.")
    put(workspace / ".agents/skills/style.md", "Be brief.")
    put(workspace / ".agents/skills/git.md", "---\ntriggers: [git]\n---\nRebase.")
    put(workspace / ".agents/skills/pdf/SKILL.md", "---\ndescription: PDFs\n---\nHidden.")
    event = await recall_for_message(True, "Use git here", SPEC, workspace, ())
    assert event is not None
    assert (event.recall_type, event.source) == ("WORKSPACE_CONTEXT", "environment")
    assert event.query == "Use git here"
    assert event.skills == ("git", "style")
    for text in ("In it: AGENTS.md", "Use tabs.", "Be brief.", "Rebase.", "<name>pdf</name>"):
        assert text in event.content
    assert f"Today: {event.timestamp[:10]}" in event.content
    assert "Hidden." not in event.content


async def test_a_later_message_recalls_only_new_skills(workspace: Path) -> None:
    put(workspace / "AGENTS.md", "Use tabs.")
    put(workspace / ".agents/skills/git.md", "---\ntriggers: [git]\n---\nRebase.")
    put(workspace / ".agents/skills/hub.md", "---\ntriggers: [git]\n---\nPush.")
    event = await recall_for_message(False, "git", SPEC, workspace, ["git"])
    assert event is not None
    assert (event.recall_type, event.skills) == ("KNOWLEDGE", ("hub",))
    assert "Rebase" not in event.content
    assert "tabs" not in event.content
    assert await recall_for_message(False, "git", SPEC, workspace, ["git", "hub"]) is None


async def test_a_skill_of_ones_own_is_shown_in_an_empty_workspace(workspace: Path) -> None:
    put(workspace.parent / "mine/pdf/SKILL.md", "---\ndescription: PDFs\n---\nUse pypdf.")
    spec = SPEC.model_copy(update={"skills": Skills(folders=(str(workspace.parent / "mine"),))})
    first = await recall_for_message(True, "hello", spec, workspace, ())
    assert first is not None
    assert "<name>pdf</name><description>PDFs</description></skill>" in first.content
    assert "<workspace>" not in first.content
    later = await recall_for_message(False, "the pdf skill", spec, workspace, first.skills)
    assert later is not None
    assert "Use pypdf." in later.content


async def test_a_long_message_is_not_repeated_whole(workspace: Path) -> None:
    put(workspace / "a", "")
    event = await recall_for_message(True, "x" * 100_000, SPEC, workspace, ())
    assert event is not None
    assert len(event.query) == 1000


async def test_a_touched_file_recalls_its_skills(workspace: Path) -> None:
    put(workspace / ".cursor/rules/py.mdc", "---\nglobs: *.py\n---\nUse types.")
    touched = ["terminal", "file:docs/a.md", f"file:{workspace}/src/../src/a.py"]
    event = await recall_for_files(touched, SPEC, workspace, ())
    assert event is not None
    assert (event.recall_type, event.query, event.skills) == ("KNOWLEDGE", "src/a.py", ("py",))
    assert "Use types." in event.content
    assert await recall_for_files(touched, SPEC, workspace, event.skills) is None
    assert await recall_for_files(["terminal"], SPEC, workspace, ()) is None


async def test_a_touched_file_recalls_the_instructions_beside_it(workspace: Path) -> None:
    put(workspace / "AGENTS.md", "At the root.")
    put(workspace / "src/AGENTS.md", "In src.")
    put(workspace / "src/CLAUDE.md", "In src.")
    put(workspace / "src/deep/CLAUDE.md", "Deeper.")
    put(workspace / "other/AGENTS.md", "Elsewhere.")
    event = await recall_for_files(["file:src/deep/a.py"], SPEC, workspace, ())
    assert event is not None
    assert event.skills == ("src/AGENTS.md", "src/deep/CLAUDE.md")
    beside = await recall_for_files(["file:src/[id]/a.py"], SPEC, workspace, ())
    assert beside is not None
    assert beside.skills == ("src/AGENTS.md",)
    assert await recall_for_files(["file:src/b.py"], SPEC, workspace, event.skills) is None


async def test_instructions_that_are_touched_or_in_a_named_folder_are_not_recalled(
    workspace: Path,
) -> None:
    put(workspace / "src/AGENTS.md", "In src.")
    put(workspace / "src/.github/rules.md", "For the forge.")
    skills = Skills(instructions=("AGENTS.md", ".github/rules.md"))
    spec = SPEC.model_copy(update={"skills": skills})
    assert await recall_for_files(["file:src/AGENTS.md"], spec, workspace, ()) is None
    beside = await recall_for_files(["file:src/b.py"], spec, workspace, ())
    assert beside is not None
    assert beside.skills == ("src/AGENTS.md",)


@pytest.mark.parametrize("file", ["/etc/passwd", "../x.py", "a\0b.py", "", "x/" * 3000 + "a.py"])
async def test_an_unreachable_file_recalls_nothing(workspace: Path, file: str) -> None:
    put(workspace / ".cursor/rules/md.mdc", "---\nglobs: *.md\n---\nText")
    assert await recall_for_files([f"file:{file}"], SPEC, workspace, ()) is None


@pytest.mark.parametrize("file", ["/etc/rules.py", "../x.py", ".."])
async def test_a_file_outside_of_the_workspace_recalls_nothing(workspace: Path, file: str) -> None:
    put(workspace / ".cursor/rules/py.mdc", "---\nglobs: *\n---\nText")
    assert await recall_for_files([f"file:{file}"], SPEC, workspace, ()) is None
