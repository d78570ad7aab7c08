"""Finding skills, their precedence, and invalid ones."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.activities.workspace.skill_files import MAX_SKILL_BYTES, MAX_SKILLS, find_skills
from perdure.agent.extensions import Skills


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def put(path: Path, text: str | bytes = "Text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def names(workspace: Path, *folders: str) -> list[str]:
    skills, problems = find_skills(Skills(folders=folders), workspace)
    assert problems == []
    return [skill.name for skill in skills]


def test_files_and_folders_of_all_dialects_are_found(workspace: Path) -> None:
    put(workspace / ".openhands/microagents/repo.md")
    put(workspace / ".openhands/microagents/README.md")
    put(workspace / ".openhands/skills/deep/er.md")
    put(workspace / ".agents/skills/pdf-1.0/SKILL.md")
    put(workspace / ".agents/skills/pdf-1.0/reference.md")
    put(workspace / ".agents/skills/pdf-1.0/deeper/SKILL.md")
    put(workspace / ".claude/skills/x/Skill.md")
    put(workspace / ".claude/rules/style.md")
    put(workspace / ".cursor/rules/base.mdc")
    put(workspace / ".cursor/rules/notes.txt")
    assert names(workspace) == ["pdf-1.0", "deep/er", "repo", "x", "style", "base"]


def test_a_skill_in_the_workspace_says_where_it_is(workspace: Path) -> None:
    put(workspace / ".claude/skills/pdf/SKILL.md")
    [skill], _ = find_skills(Skills(), workspace)
    assert skill.location == ".claude/skills/pdf/SKILL.md"


def test_a_folder_of_ones_own_comes_first_and_is_out_of_reach(workspace: Path) -> None:
    put(workspace.parent / "mine/git.md", "---\ntriggers: [git]\n---\nMine")
    put(workspace / ".agents/skills/git.md", "Theirs")
    [skill], _ = find_skills(Skills(folders=(str(workspace.parent / "mine"),)), workspace)
    assert (skill.content, skill.location) == ("Mine", None)


def test_a_folder_may_be_one_skill_and_relative_to_the_workspace(workspace: Path) -> None:
    put(workspace / "docs/pdf/SKILL.md")
    [skill], _ = find_skills(Skills(folders=("docs/pdf",)), workspace)
    assert (skill.name, skill.location) == ("pdf", "docs/pdf/SKILL.md")


def test_a_folder_of_the_workspace_is_one_by_any_name(workspace: Path) -> None:
    put(workspace / "docs/a.md")
    (workspace.parent / "alias").symlink_to(workspace)
    for folder in (f"{workspace.parent}/alias/docs", f"{workspace}/../workspace/docs"):
        [skill], _ = find_skills(Skills(folders=(folder,)), workspace)
        assert skill.location == "docs/a.md"


def test_a_named_folder_of_the_workspace_does_not_lead_out_of_it(workspace: Path) -> None:
    put(workspace.parent / "secrets/key.md", "secret")
    (workspace / "docs").symlink_to("../secrets")
    assert names(workspace, "docs") == []


def test_the_workspaces_own_skills_can_be_left_alone(workspace: Path) -> None:
    put(workspace / ".agents/skills/a.md")
    assert find_skills(Skills(workspace=False), workspace) == ([], [])


def test_links_of_the_workspace_stay_in_it(workspace: Path) -> None:
    put(workspace.parent / "secrets/key.md", "secret")
    put(workspace / "shared/pdf/SKILL.md")
    folder = workspace / ".agents/skills"
    folder.mkdir(parents=True)
    (folder / "pdf").symlink_to("../../shared/pdf")
    (folder / "key.md").symlink_to("../../../secrets/key.md")
    (folder / "all").symlink_to("../../../secrets")
    (folder / "round").symlink_to(".")
    (workspace / ".claude").mkdir()
    (workspace / ".claude/skills").symlink_to("../../secrets")
    skills, problems = find_skills(Skills(), workspace)
    assert {skill.content for skill in skills} == {"Text"}
    assert {problem.partition(": ")[2] for problem in problems} == {"it leads out of the workspace"}
    assert not any("secrets" in problem for problem in problems)


def test_links_of_ones_own_folder_lead_anywhere(workspace: Path) -> None:
    put(workspace.parent / "dotfiles/git.md")
    mine = workspace.parent / "mine"
    mine.mkdir()
    (mine / "git.md").symlink_to("../dotfiles/git.md")
    assert names(workspace, str(mine)) == ["git"]


def test_bad_files_are_named_and_the_others_used(workspace: Path) -> None:
    folder = workspace / ".agents/skills"
    put(folder / "binary.md", b"a\0b")
    put(folder / "closed.md", "---\n- a\nb: c\n---\nText")
    put(folder / "empty.md", "")
    put(folder / "folder.md/x", "")
    put(folder / "good.md")
    put(folder / "huge.md", "x" * (MAX_SKILL_BYTES + 1))
    put(folder / "latin.md", b"\xe4")
    (folder / "dangling.md").symlink_to("gone.md")
    os.mkfifo(folder / "pipe.md")
    skills, problems = find_skills(Skills(), workspace)
    assert [skill.name for skill in skills] == ["good"]
    assert [problem.removeprefix(".agents/skills/") for problem in problems] == [
        "binary.md: it is a binary file",
        "closed.md: its front matter is not YAML (expected <block end>, but found '?')",
        "dangling.md: No such file or directory",
        "empty.md: it says nothing",
        "folder.md: it is not a regular file",
        "huge.md: it has over 65,536 bytes",
        "latin.md: it is not UTF-8 text",
        "pipe.md: it is not a regular file",
    ]


@pytest.mark.parametrize("folder", ["/there/is/none", "a\0b", "~nobody/x"])
def test_a_folder_that_is_not_there_is_named(workspace: Path, folder: str) -> None:
    _, [problem] = find_skills(Skills(folders=(folder,)), workspace)
    assert problem.endswith(": there is no such folder")


def test_only_some_of_very_many_files_are_read(workspace: Path) -> None:
    for number in range(MAX_SKILLS + 1):
        put(workspace / f".agents/skills/{number:03}.md")
    skills, [problem] = find_skills(Skills(), workspace)
    assert len(skills) == MAX_SKILLS
    assert problem == f".agents/skills: only {MAX_SKILLS} of its files are read"


def test_a_skill_that_was_changed_is_read_again(workspace: Path) -> None:
    path = put(workspace / ".agents/skills/a.md", "old")
    before = path.stat().st_mtime_ns
    assert [skill.content for skill in find_skills(Skills(), workspace)[0]] == ["old"]
    put(path, "new")
    os.utime(path, ns=(before + 1, before + 1))
    assert [skill.content for skill in find_skills(Skills(), workspace)[0]] == ["new"]


@given(raw=st.binary(max_size=400))
def test_any_bytes_are_a_skill_or_a_problem(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    workspace = tmp_path_factory.mktemp("any")
    for name in ("a.md", "b/SKILL.md"):
        put(workspace / ".agents/skills" / name, raw)
    skills, problems = find_skills(Skills(), workspace)
    assert len(skills) + len(problems) == 2
