"""Named agents in files: where each key stands, and what is told of wrong ones."""

import asyncio
from pathlib import Path

import pytest

from perdure.agent.named import Definition
from perdure.agent.resolve import resolve_agent
from perdure.agent.spec import Agent
from perdure.client.agents.files import list_names, read_definition
from perdure.client.agents.lines import find_toml_line, find_yaml_line
from perdure.client.agents.sources import AgentSources
from perdure.errors import Invalid
from perdure.settings.settings import Settings
from perdure.storage.open import open_store
from perdure.storage.user_agents import UserAgents

TOML = """\
# An agent.
model = "m"

instructions = '''
limits = 1
'''
[limits]
max_events = 9

[[mcp]]
name = "a"
[[mcp]]
name = "b"
url = "http://b"
"""

YAML = "---\nname: x\nlimits:\n  max_events: 9\nmodel:\n  name: m\n---\nname: of the prompt\n"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("model", 2),
        ("model.name", 2),
        ("instructions", 4),
        ("limits", 7),
        ("limits.max_events", 8),
        ("mcp[1].url", 14),
        ("mcp.0.name", 11),
        ("nothing", None),
    ],
)
def test_the_line_of_a_key_in_toml(path: str, line: int | None) -> None:
    assert find_toml_line(TOML, path) == line


@pytest.mark.parametrize(
    ("path", "line"), [("name", 2), ("limits.max_events", 4), ("model.name", 6), ("tools", None)]
)
def test_the_line_of_a_key_in_front_matter(path: str, line: int | None) -> None:
    assert find_yaml_line(YAML, path) == line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agents").mkdir()
    return tmp_path / "agents"


def write(folder: Path, name: str, text: str) -> Definition:
    path = folder / name
    path.write_text(text)
    return read_definition(path)


def test_markdown_has_front_matter_and_a_prompt(folder: Path) -> None:
    text = (
        "---\nname: tester\ndescription: Tests.\nmodel: m\ntools: grep, think\n"
        "limits:\n  max_events: 9\n  max_budget: null\nnetwork: true\n---\n\nYou test.\n"
    )
    definition = write(folder, "tester.md", text)
    sources = AgentSources(Settings(), [folder])
    agent = asyncio.run(resolve(sources, "tester"))
    assert (definition.name, definition.description) == ("tester", "Tests.")
    assert (agent.system_prompt, agent.tools) == ("You test.", ("grep", "think"))
    assert (agent.limits.max_events, agent.limits.max_budget, agent.network) == (9, None, True)


async def resolve(sources: AgentSources, name: str) -> Agent:
    return resolve_agent(name, (), await sources.load_offer(name, ())).agent


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("x.toml", "model = \n", "x.toml is not valid TOML: Invalid value (at line 1"),
        ("x.toml", '\nmodle = "m"\n', "x.toml:2: An agent has no 'modle': did you mean model?"),
        ("x.toml", "[limits]\nmax_cost = 1\n", "x.toml:2: An agent has no 'limits.max_cost'"),
        ("x.toml", 'null = ["limits.x"]\n', "x.toml:1: An agent has no 'limits.x'"),
        (
            "x.md",
            "---\nmodel: m\ntols: a\n---\nHi.",
            "x.md:3: An agent has no 'tols': did you",
        ),
        ("x.md", "---\n'model: m\n---\nHi.", "x.md:1: The agent cannot be read: its front matter"),
        ("x.md", "Hi.\n", "x.md:1: It has no front matter"),
        ("a b.toml", 'model = "m"\n', "'a b' is not the name of an agent"),
        ("default.toml", 'model = "m"\n', "'default' is the agent without a name"),
    ],
)
def test_a_bad_file_is_told_with_its_line(
    folder: Path, name: str, text: str, sentence: str
) -> None:
    with pytest.raises(Invalid) as refused:
        write(folder, name, text)
    assert str(refused.value).removeprefix(f"{folder}/").startswith(sentence)


def test_a_file_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(Invalid, match="cannot be read"):
        read_definition(folder / "x.toml")


def test_pages_for_people_are_no_agents(folder: Path) -> None:
    write(folder, "b.toml", 'model = "m"\n')
    write(folder, "a.md", "---\nmodel: m\n---\nHi.")
    (folder / "README.md").write_text("# What these agents are for\n")
    (folder / "notes.txt").write_text("")
    assert list_names(folder) == ["a", "b"]
    assert list_names(folder / "nowhere") == []


def test_paths_begin_at_the_folder_of_the_file(folder: Path) -> None:
    definition = write(folder, "x.toml", 'model = "scripted:s.json"\nworkspace = "../w"\n')
    assert definition.table["model"] == f"scripted:{folder}/s.json"
    assert definition.table["workspace"] == f"{folder}/../w"


async def test_the_first_place_that_has_a_name_decides(folder: Path, tmp_path: Path) -> None:
    own = UserAgents(open_store((tmp_path / "store").as_uri()), "anna")
    tables = {name: {"model": "of settings"} for name in ("a", "b", "c")}
    settings = Settings(agents=tables, model="of all")
    sources = AgentSources(settings, [folder], own)
    write(folder, "a.toml", 'model = "of file"\n')
    await own.save("a", {"model": "of anna"})
    await own.save("b", {"model": "of anna"})
    models = [(await resolve(sources, name)).model.name for name in ("a", "b", "c")]
    assert models == ["of file", "of anna", "of settings"]
    assert await sources.list_names() == ["a", "b", "c"]
    await own.save_settings({"limits": {"max_events": 7}})
    assert (await resolve(sources, "a")).limits.max_events == 7
    other = AgentSources(settings, [], UserAgents(open_store((tmp_path / "store").as_uri()), "ben"))
    assert (await resolve(other, "b")).model.name == "of settings"


async def test_a_name_leads_out_of_no_folder(folder: Path) -> None:
    (folder.parent / "x.toml").write_text('model = "m"\n')
    sources = AgentSources(Settings(), [folder])
    for name in ("../x", "/etc/passwd", "", "."):
        assert await sources.find(name) is None


def test_two_files_of_one_name_are_refused(folder: Path) -> None:
    write(folder, "x.toml", 'model = "m"\n')
    write(folder, "x.md", "---\nmodel: m\n---\nHi.")
    with pytest.raises(Invalid, match="are both the agent 'x'"):
        AgentSources(Settings(), [folder]).find_in_folders("x")
