"""What is recalled fits, and says where the rest is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.recall import (
    LONGEST,
    LONGEST_PART,
    Facts,
    Instructions,
    knowledge_context,
    workspace_context,
)
from agent.skills import Match, Skill

FACTS = Facts(
    directory="/srv/here",
    system="Linux x86_64",
    day="2026-03-01",
    entries=("README.md", "src/"),
    more=3,
    git="branch main",
)


def skill(name: str, content: str = "text", **fields: object) -> Skill:
    return Skill.model_validate({"name": name, "content": content, **fields})


def test_nothing_is_said_where_there_is_nothing_to_say() -> None:
    assert workspace_context(None, [], [skill("waits", keywords=("git",))], [], []).content == ""
    assert knowledge_context([]).content == ""


def test_the_facts_come_first() -> None:
    found = workspace_context(FACTS, [Instructions(name="AGENTS.md", text="Use tabs.")], [], [], [])
    assert found.content == (
        "<workspace>\nWorking directory: /srv/here\nSystem: Linux x86_64\n"
        "Today: 2026-03-01 (UTC)\nGit: branch main\nIn it: README.md, src/ and 3 more\n"
        '</workspace>\n\n<instructions file="AGENTS.md">\nUse tabs.\n</instructions>'
    )
    assert found.skills == ()


def test_an_offered_skill_is_named_with_its_place_but_not_shown() -> None:
    offered = skill("pdf", "secret", description="For <PDFs>", listed=True, location="a/SKILL.md")
    found = workspace_context(None, [], [offered], [], [])
    assert (
        "<skill><name>pdf</name><description>For &lt;PDFs&gt;</description>"
        "<location>a/SKILL.md</location></skill>"
    ) in found.content
    assert "secret" not in found.content
    assert found.skills == ()


def test_an_offered_skill_that_is_called_up_is_shown() -> None:
    offered = skill("pdf", "secret", listed=True)
    found = workspace_context(None, [], [offered], [Match(offered, "pdf")], [])
    assert "available_skills" not in found.content
    assert "because of `pdf`" in found.content
    assert found.skills == ("pdf",)


def test_a_skill_that_is_always_on_is_shown_once() -> None:
    always = skill("style", always=True)
    found = workspace_context(None, [], [always], [Match(always, "/style")], [])
    assert found.content == '<skill name="style">\ntext\n</skill>'
    assert found.skills == ("style",)


def test_what_could_not_be_read_is_named() -> None:
    found = workspace_context(None, [], [], [], ["a.md: it is a binary file"])
    assert "* a.md: it is a binary file" in found.content


def test_a_long_part_is_cut_and_says_where_the_rest_is() -> None:
    long = skill("long", "ä" * LONGEST_PART, location="skills/long.md")
    found = knowledge_context([Match(long, "long")])
    assert found.content.endswith("ä\n[Cut off here: the rest is in `skills/long.md`]\n</skill>")
    assert len(found.content.encode()) < LONGEST_PART + 200


def test_what_there_is_no_room_for_is_named_and_not_counted_as_shown() -> None:
    long = [skill(f"s{n}", "x" * LONGEST_PART, location=f"s{n}.md") for n in range(5)]
    found = knowledge_context([Match(one, "x") for one in [*long, skill("short")]])
    assert found.skills == ("s0", "s1", "s2")
    assert "no room for more: s3.md, s4.md, short. Read" in found.content
    assert len(found.content.encode()) <= LONGEST


def test_a_long_list_of_skills_says_how_many_are_missing() -> None:
    offered = [skill(f"s{n}", description="d" * 1000, listed=True) for n in range(100)]
    content = workspace_context(None, [], offered, [], []).content
    named = content.count("<name>")
    assert 0 < named < 20
    assert f"[{100 - named} more are not listed]" in content


TEXT = st.text(st.characters(codec="utf-8"), max_size=30).flatmap(
    lambda text: st.integers(1, 4000).map(lambda times: text * times)
)


@pytest.mark.parametrize("always", [True, False])
@given(st.lists(TEXT, max_size=8), st.lists(TEXT, max_size=4))
def test_it_always_fits(always: bool, skills: list[str], names: list[str]) -> None:
    made = [
        skill(f"{n}{names[n % len(names)][:128] if names else ''}", text, always=always)
        for n, text in enumerate(skills)
    ]
    instructions = [Instructions(name=name, text=name) for name in names]
    called = [Match(one, "word") for one in made]
    found = workspace_context(FACTS, instructions, made, called, names)
    assert len(found.content.encode()) <= LONGEST
    assert set(found.skills) <= {one.name for one in made}
