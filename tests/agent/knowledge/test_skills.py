"""Skills in the common dialects, and their triggers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.knowledge.skills import (
    BadSkill,
    Skill,
    glob_matches,
    parse_skill,
    skills_for_message,
    skills_for_path,
)

MICROAGENT = """\
---
name: github
type: knowledge
version: 1.0.0
agent: CodeActAgent
triggers:
- github
- git
---

You have access to an environment variable, `GITHUB_TOKEN`.
"""

REPOSITORY = """\
---
name: repo
type: repo
agent: CodeActAgent
---
This repository holds the frontend.
"""

TASK = """\
---
name: update_pr_description
type: task
version: 1.0.0
triggers:
- /update_pr_description
inputs:
  - name: PR_URL
    description: URL of the pull request
    type: string
  - name: BRANCH_NAME
---
Check the branch "${BRANCH_NAME}" and update the description of ${PR_URL}.
"""

AGENT_SKILL = """\
---
name: pdf
description: Comprehensive PDF manipulation: forms, tables & text. Use it when a PDF is involved.
license: Proprietary. LICENSE.txt has complete terms
allowed-tools: Bash(pdftotext:*) Read
metadata:
  author: somebody
---

# PDF Processing Guide

Use pypdf.
"""

CURSOR = """\
---
description: How we write components
globs: src/**/*.tsx, *.{css,scss}
alwaysApply: false
---
Components are functions.
"""


def skill(name: str = "s", *keywords: str, paths: tuple[str, ...] = ()) -> Skill:
    return Skill(name=name, content="x", keywords=keywords, paths=paths)


# Dialects.


def test_a_microagent_waits_for_its_triggers() -> None:
    made = parse_skill(MICROAGENT, "file", ".openhands/microagents/file.md")
    assert made.name == "github"
    assert made.keywords == ("github", "git", "/github")
    assert (made.always, made.listed) == (False, False)
    assert made.content == "You have access to an environment variable, `GITHUB_TOKEN`."


def test_a_repository_microagent_is_always_on() -> None:
    assert parse_skill(REPOSITORY, "file").always


def test_a_task_waits_for_its_command_and_tells_what_to_ask_for() -> None:
    made = parse_skill(TASK, "file")
    assert made.keywords == ("/update_pr_description",)
    assert (made.always, made.listed) == (False, False)
    assert made.content.endswith(
        "Ask the user for what the message does not say of these:\n"
        "* PR_URL: URL of the pull request\n* BRANCH_NAME"
    )


def test_a_skill_md_is_offered_by_its_description() -> None:
    made = parse_skill(AGENT_SKILL, "file", ".claude/skills/pdf/SKILL.md", agent_skill=True)
    assert made.name == "pdf"
    assert made.description == (
        "Comprehensive PDF manipulation: forms, tables & text. Use it when a PDF is involved."
    )
    assert made.keywords == ("/pdf",)
    assert (made.always, made.listed) == (False, True)


def test_a_skill_md_out_of_reach_answers_to_its_name() -> None:
    made = parse_skill(AGENT_SKILL, "file", agent_skill=True)
    assert made.keywords == ("/pdf", "pdf")
    assert [match.trigger for match in skills_for_message("Fill in this PDF.", [made], ())] == [
        "pdf"
    ]


def test_a_skill_md_with_triggers_is_offered_and_called_up() -> None:
    made = parse_skill("---\ntriggers: [tables]\n---\nText", "pdf", "a/SKILL.md", agent_skill=True)
    assert made.listed
    assert made.keywords == ("tables", "/pdf")


def test_a_skill_that_only_people_may_start_is_not_offered() -> None:
    text = "---\ndescription: Deploys.\ndisable-model-invocation: true\n---\nPush it."
    made = parse_skill(text, "deploy", "a/SKILL.md", agent_skill=True)
    assert (made.listed, made.keywords) == (False, ("/deploy",))


def test_a_rule_waits_for_its_files() -> None:
    made = parse_skill(CURSOR, "components", ".cursor/rules/components.mdc")
    assert sorted(made.paths) == ["*.css", "*.scss", "src/**/*.tsx"]
    assert (made.always, made.listed) == (False, False)


@pytest.mark.parametrize(
    ("head", "always", "listed"),
    [
        ("alwaysApply: true\nglobs: *.py", True, False),
        ("alwaysApply: false\nglobs:", False, True),
        ("always: yes\ntriggers: [a]", True, False),
        ("always: true", True, False),
        ("keyword: a", False, False),
        ("path: src/", False, False),
        ("description: Anything", True, False),
    ],
)
def test_a_plain_file_is_always_on_or_listed_by_its_head(
    head: str, always: bool, listed: bool
) -> None:
    made = parse_skill(f"---\n{head}\n---\nText", "rule", "rule.md")
    assert (made.always, made.listed) == (always, listed)


def test_a_file_without_any_head_is_always_on_and_named_after_itself() -> None:
    made = parse_skill("# Title\n\nUse tabs.\n", "style/tabs")
    assert (made.name, made.always, made.description) == ("style/tabs", True, "Use tabs.")


def test_a_name_is_one_line_of_text_that_can_be_stored() -> None:
    assert parse_skill('---\nname: "a\\n b\\ud800\\0"\n---\nText', "x").name == "a b?"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\nname: a\n---\n \n", "says nothing"),
        ("---\n- a\nb: c\n---\nText", "is not YAML"),
        (f"---\nglobs: {'{a,b}' * 40}\n---\nText", "over 256 paths"),
        (f"---\ntriggers: [{'a, ' * 300}]\n---\nText", "over 256 triggers"),
    ],
)
def test_an_invalid_skill_file_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BadSkill, match=reason):
        parse_skill(text, "x")


# Keywords.


@pytest.mark.parametrize(
    ("keyword", "text", "match"),
    [
        ("git", "Use Git, please", True),
        ("git", "a digit", False),
        ("git", "gitlab", False),
        ("git", "git-lfs", True),
        ("git", "请用git提交", True),
        ("部署", "请部署应用", True),
        ("caf", "café", False),
        ("pull request", "open a Pull\n  Request", True),
        ("pull request", "pull the request", False),
        ("c++", "in C++.", True),
        (".env", "edit .env", True),
        ("a.b", "axb", False),
        ("/deploy", "/deploy now", True),
        ("/deploy", "please `/deploy`.", True),
        ("/deploy", "see /deploy.sh", False),
        ("/deploy", "see /usr/deploy", False),
        ("/deploy", "see ./deploy", False),
        ("/deploy", "https://deploy", False),
        ("/deploy", "/deploy-all", False),
    ],
)
def test_a_keyword_is_found_as_a_word(keyword: str, text: str, match: bool) -> None:
    assert bool(skills_for_message(text, [skill("s", keyword)], ())) is match


def test_a_skill_is_triggered_once() -> None:
    skills = [skill("a", "git", "hub"), skill("b", "git"), skill("c", "other")]
    called = skills_for_message("hub and git", skills, {"b"})
    assert [(match.skill.name, match.trigger) for match in called] == [("a", "git")]


# Paths.


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("*.py", "a.pyc", False),
        ("/*.py", "a.py", True),
        ("/*.py", "src/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/very/deep/a.py", True),
        ("**/tests/**", "a/tests/b/c", True),
        ("**/tests/**", "a/test/b", False),
        ("src/", "src/a/b", True),
        ("./src/**", "src/a", True),
        ("src", "src/a", False),
        ("**", "anything/at/all", True),
        ("a?[0-9].md", "ab1.md", True),
        ("*.md", "README.MD", False),
        ("[", "[", True),
    ],
)
def test_a_glob_fits_a_path(glob: str, path: str, fits: bool) -> None:
    assert glob_matches(glob, path) is fits


def test_every_glob_matches_in_bounded_time() -> None:
    assert not glob_matches("**/a/" * 100 + "b", "a/" * 1000 + "c")
    assert not glob_matches("*a" * 100 + "b", "a" * 200)


def test_a_file_triggers_its_skills_that_are_not_activated() -> None:
    skills = [skill("py", paths=("*.py",)), skill("all", paths=("**",)), skill("no", "py")]
    assert [match.skill.name for match in skills_for_path("src/a.py", skills, {"all"})] == ["py"]


# Whatever a file holds.


@given(st.text(max_size=300), st.booleans())
def test_any_text_is_a_skill_or_refused(text: str, agent_skill: bool) -> None:
    try:
        made = parse_skill(text, "name", agent_skill=agent_skill)
    except BadSkill:
        return
    assert made.name
    skills_for_message("some text", [made], ())
    skills_for_path("a/b.py", [made], ())


HEADS = st.dictionaries(
    st.sampled_from(
        ["name", "description", "triggers", "paths", "globs", "always", "inputs", "type"]
    ),
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(["true", "[a, b]", "{a: b}", "[[a], {b: c}]", "{a,b}/*", '"\\ud800"', "|"]),
    ),
)


@given(HEADS)
def test_any_field_is_taken_or_refused(head: dict[str, str]) -> None:
    written = "\n".join(f"{name}: {value}" for name, value in head.items())
    try:
        made = parse_skill(f"---\n{written}\n---\nText", "name")
    except BadSkill:
        return
    made.model_dump_json().encode()
    skills_for_message("some text", [made], ())
    skills_for_path("a/b.py", [made], ())
