"""Recalled context fits its size, and names the location of the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.knowledge.recall import (
    MAX_PART_BYTES,
    MAX_RECALL_BYTES,
    InstructionFile,
    WorkspaceFacts,
    recall_skills,
    recall_workspace,
)
from perdure.agent.knowledge.skills import Match, Skill

FACTS = WorkspaceFacts(
    directory="/srv/here",
    system="Linux x86_64",
    day="2026-03-01",
    entries=("README.md", "src/"),
    more_entries=3,
    git="branch main",
)


def skill(name: str, content: str = "text", **fields: object) -> Skill:
    return Skill.model_validate({"name": name, "content": content, **fields})


def test_an_empty_recall_has_no_content() -> None:
    assert recall_workspace(None, [], [skill("waits", keywords=("git",))], [], []).content == ""
    assert recall_skills([]).content == ""


def test_the_facts_come_first() -> None:
    recall = recall_workspace(
        FACTS, [InstructionFile(name="AGENTS.md", text="Use tabs.")], [], [], []
    )
    assert recall.content == (
        "<workspace>\nWorking directory: /srv/here\nSystem: Linux x86_64\n"
        "Today: 2026-03-01 (UTC)\nGit: branch main\nIn it: README.md, src/ and 3 more\n"
        '</workspace>\n\n<instructions file="AGENTS.md">\nUse tabs.\n</instructions>'
    )
    assert recall.skills == ()


def test_a_listed_skill_is_offered_with_its_location_only() -> None:
    offered = skill("pdf", "secret", description="For <PDFs>", listed=True, location="a/SKILL.md")
    recall = recall_workspace(None, [], [offered], [], [])
    assert (
        "<skill><name>pdf</name><description>For &lt;PDFs&gt;</description>"
        "<location>a/SKILL.md</location></skill>"
    ) in recall.content
    assert "secret" not in recall.content
    assert recall.skills == ()


def test_a_listed_skill_is_shown_once_triggered() -> None:
    offered = skill("pdf", "secret", listed=True)
    recall = recall_workspace(None, [], [offered], [Match(offered, "pdf")], [])
    assert "available_skills" not in recall.content
    assert "because of `pdf`" in recall.content
    assert recall.skills == ("pdf",)


def test_a_skill_that_is_always_on_is_shown_once() -> None:
    always = skill("style", always=True)
    recall = recall_workspace(None, [], [always], [Match(always, "/style")], [])
    assert recall.content == '<skill name="style">\ntext\n</skill>'
    assert recall.skills == ("style",)


def test_unreadable_skills_are_named() -> None:
    recall = recall_workspace(None, [], [], [], ["a.md: it is a binary file"])
    assert "* a.md: it is a binary file" in recall.content


def test_a_long_part_is_cut_and_names_the_location_of_the_rest() -> None:
    long = skill("long", "ä" * MAX_PART_BYTES, location="skills/long.md")
    recall = recall_skills([Match(long, "long")])
    assert recall.content.endswith("ä\n[Cut off here: the rest is in `skills/long.md`]\n</skill>")
    assert len(recall.content.encode()) < MAX_PART_BYTES + 200


def test_omitted_skills_are_named_and_not_recorded_as_shown() -> None:
    long = [skill(f"s{n}", "x" * MAX_PART_BYTES, location=f"s{n}.md") for n in range(5)]
    recall = recall_skills([Match(item, "x") for item in [*long, skill("short")]])
    assert recall.skills == ("s0", "s1", "s2")
    assert "no room for more: s3.md, s4.md, short. Read" in recall.content
    assert len(recall.content.encode()) <= MAX_RECALL_BYTES


def test_a_long_list_of_skills_says_how_many_are_missing() -> None:
    offered = [skill(f"s{n}", description="d" * 1000, listed=True) for n in range(100)]
    content = recall_workspace(None, [], offered, [], []).content
    named = content.count("<name>")
    assert 0 < named < 20
    assert f"[{100 - named} more are not listed]" in content


TEXT = st.text(st.characters(codec="utf-8"), max_size=30).flatmap(
    lambda text: st.integers(1, 4000).map(lambda times: text * times)
)


@pytest.mark.parametrize("always", [True, False])
@given(st.lists(TEXT, max_size=8), st.lists(TEXT, max_size=4))
def test_a_recall_never_exceeds_its_size(always: bool, skills: list[str], names: list[str]) -> None:
    made = [
        skill(f"{n}{names[n % len(names)][:128] if names else ''}", text, always=always)
        for n, text in enumerate(skills)
    ]
    instructions = [InstructionFile(name=name, text=name) for name in names]
    called = [Match(item, "word") for item in made]
    recall = recall_workspace(FACTS, instructions, made, called, names)
    assert len(recall.content.encode()) <= MAX_RECALL_BYTES
    assert set(recall.skills) <= {item.name for item in made}
