"""Named agents on the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.tools.catalog import BUILT_IN_TOOLS
from tests.cli.command import Perdure

Script = Callable[..., str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a folder of agents."""
    (tmp_path / "agents").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
async def test_a_named_agent_is_listed_checked_shown_and_run(
    perdure: Perdure, script: Script, here: Path
) -> None:
    model = f"scripted:{script({'content': 'It is 5.'})}"
    (here / "perdure.toml").write_text(
        f'[agents.base]\nmodel = "{model}"\nlimits = {{ max_iterations = 9 }}\n'
    )
    (here / "agents" / "adder.md").write_text(
        "---\ndescription: Adds.\nextends: base\nsecrets: [A]\n---\nYou add.\n"
    )
    listed = await perdure("agent", "ls", "-ojson")
    names = {row["name"]: (row["place"], row["description"]) for row in listed.json}
    assert names == {"adder": ("agents/adder.md", "Adds."), "base": ("[agents.base]", "")}
    shown = await perdure("agent", "show", "adder")
    assert 'system_prompt = "You add."  # agents/adder.md\n' in shown.out
    assert "max_iterations = 9  # [agents.base]\n" in shown.out
    assert "parallel = 8  # default\n" in shown.out
    assert (await perdure("agent", "check")).out == "adder: ok\nbase: ok\n"
    options = ("--secret", "B", "--condenser-max-size", "50", "-c", "parallel=3", "-ojson")
    ran = await perdure("run", "2 + 3?", "--agent", "adder", *options)
    assert (ran.code, ran.json["answer"]) == (0, "It is 5.")
    in_force = await perdure("show", ran.json["conversation_id"], "--agent")
    assert 'secrets = ["A", "B"]  # agents/adder.md, options\n' in in_force.out
    assert "parallel = 3  # -c\n" in in_force.out
    assert "max_size = 50, keep_first = 4" in in_force.out


@pytest.mark.long
async def test_a_bad_agent_is_told_with_its_line_before_anything_starts(
    perdure: Perdure, here: Path
) -> None:
    (here / "agents" / "a.toml").write_text('extends = "b"\n')
    (here / "agents" / "b.toml").write_text('# B\nextends = "a"\n')
    (here / "agents" / "c.toml").write_text('model = "m"\n[limits]\nmax_cost = 3\n')
    (here / "agents" / "d.toml").write_text('model = "m"\ntools = ["grepp"]\n')
    checked = await perdure("agent", "check")
    assert checked.code == 2
    assert checked.out.splitlines() == [
        "a: agents/b.toml:2: Agents extend one another in a circle: a -> b -> a.",
        "b: agents/a.toml:1: Agents extend one another in a circle: b -> a -> b.",
        "c: agents/c.toml:3: An agent has no 'limits.max_cost': there are max_iterations, "
        "max_budget, max_tokens, max_events, deadline.",
        f"d: There is no tool 'grepp': there are {', '.join(BUILT_IN_TOOLS)}.",
    ]
    for name, code in (("c", 2), ("nobody", 2)):
        ran = await perdure("run", "Go.", "--agent", name, "-ojson")
        assert (ran.code, ran.error["code"]) == (code, "invalid")
    unknown = await perdure("agent", "show", "nobody")
    assert unknown.code == 3
    assert "There are: default, a, b, c, d." in unknown.err
