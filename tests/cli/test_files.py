"""Where the files of a conversation are, and what it changed: `run`, `diff`, `files`, `status`."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import Perdure, model_options, tool_call_answer

Script = Callable[..., str]
FINISH = tool_call_answer("finish", message="Done.")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory of the user's, with a file."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("one\ntwo\n")
    return project


def shell(command: str) -> dict[str, object]:
    return tool_call_answer("terminal", command=command)


@pytest.mark.long
async def test_a_run_in_a_directory_says_what_it_changed_and_diff_shows_it(
    perdure: Perdure, script: Script, project: Path
) -> None:
    change = shell("printf 'one\\n2\\nthree\\n' > a.py; printf 'x\\n' > new")
    options = (*model_options(script(change, FINISH)), "-w", str(project))
    done = await perdure("run", "Change it.", *options)
    assert done.code == 0
    assert f"workspace     {project}" in done.err
    assert "changed  a.py +2 -1\nadded    new +1\n" in done.err
    assert "a.py +2" not in done.out, "the answer alone is on stdout"
    name = done.err.split("conversation  ")[1].split()[0]
    (project / "a.py").write_text("by the user\n")
    diff = await perdure("diff", name)
    assert "-two\n+2\n+three\n" in diff.out
    assert "by the user" not in diff.out, "what comes after the turn is not the agent's"
    assert (await perdure("diff", name, "--stat")).out == "changed  a.py +2 -1\nadded    new +1\n"
    status = await perdure("status", name)
    assert f"workspace    {project}" in status.out


@pytest.mark.long
async def test_each_turn_in_a_directory_has_its_own_changes(
    perdure: Perdure, script: Script, project: Path
) -> None:
    path = script(shell("echo three >> a.py"), FINISH, shell("echo four >> a.py"), FINISH)
    done = await perdure("run", "Go.", *model_options(path), "-w", str(project), "-ojson")
    first = [{"path": "a.py", "kind": "changed", "added": 1, "removed": 0}]
    assert done.json["files_changed"] == first
    name, end = (done.json[field] for field in ("conversation_id", "next_seq"))
    with (project / "a.py").open("a") as file:
        file.write("the user's\n")
    done = await perdure("send", name, "Again.", "--wait", "-ojson")
    assert done.json["files_changed"] == first
    diff = (await perdure("diff", name, "--after", str(end - 1))).out
    assert " the user's\n+four\n" in diff
    whole = (await perdure("diff", name, "-ojson")).json
    assert [(change["path"], change["added"]) for change in whole] == [("a.py", 3)]


@pytest.mark.long
async def test_the_files_of_an_own_folder_are_listed_and_copied(
    perdure: Perdure, script: Script, tmp_path: Path
) -> None:
    make = shell("mkdir sub; for i in $(seq 24); do echo $i > sub/$i; done; printf hello > a")
    done = await perdure("run", "Make them.", *model_options(script(make, FINISH)))
    assert "(a folder of its own)" in done.err
    assert done.err.count("added    ") == 20
    name = done.err.split("conversation  ")[1].split()[0]
    assert f"... and 5 more: `perdure diff {name}`" in done.err
    listed = await perdure("files", name)
    assert "           5  a\n" in listed.out
    assert "sub/24" in listed.out
    target = tmp_path / "copies/here"
    assert (await perdure("files", name, "--copy", str(target))).code == 0
    assert (target / "a").read_text() == "hello"
    assert [path.name for path in target.parent.iterdir()] == ["here"]
    again = await perdure("files", name, "--copy", str(target))
    assert (again.code, "Name a folder that is not there yet." in again.err) == (4, True)


@pytest.mark.long
async def test_a_turn_that_changed_nothing_says_nothing(
    perdure: Perdure, script: Script, project: Path
) -> None:
    path = script(shell("cat a.py"), FINISH)
    done = await perdure("run", "Look.", *model_options(path), "-w", str(project), "-ojson")
    assert (done.json["files_changed"], "changed  " in done.err) == ([], False)
    none = await perdure("diff", done.json["conversation_id"])
    assert (none.out, none.err) == ("\n", "No file is changed.\n")


@pytest.mark.long
async def test_git_trusts_the_directory_after_a_run(
    perdure: Perdure, script: Script, project: Path
) -> None:
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@x", "-C", str(project))
    subprocess.run([*git, "init", "-q"], check=True)
    owner = project.stat().st_uid
    commit = "git -c user.name=B -c user.email=b@x commit -qm made && git log --format=%s"
    path = script(shell(f"git add a.py && {commit}"), FINISH)
    done = await perdure("run", "Commit.", *model_options(path), "-w", str(project), "-ojsonl")
    assert '"made' in done.out
    status = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True)
    assert status.stdout == b""
    assert {path.lstat().st_uid for path in project.rglob("*")} == {owner}


@pytest.mark.long
@pytest.mark.parametrize("name", ["diff", "files"])
async def test_a_conversation_that_is_not_there_is_not_found(perdure: Perdure, name: str) -> None:
    done = await perdure(name, "01a20000-0000-7000-8000-000000000000")
    assert done.code == 3


@pytest.mark.long
async def test_a_workspace_that_is_no_directory_is_refused(
    configured: Perdure, project: Path
) -> None:
    local = configured.without_env("PERDURE_STORE", "TEMPORAL_ADDRESS")
    done = await local("run", "x", "--model", "any", "-w", str(project / "a.py"))
    assert done.code == 2
    assert f"{project / 'a.py'} is not a directory." in done.err
