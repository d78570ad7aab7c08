"""The risk of an action is told by the model, by the rules, or by somebody's own analyzer."""

import importlib
import logging
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest

from perdure.events.actions import TerminalAction
from perdure.events.risk import Risk
from perdure.events.tools import ActionEvent
from perdure.tools.risk.analyzers import load_analyzers
from tests import builders

WORKSPACE = PurePosixPath("/data/ws")
Write = Callable[[str], str]

OWN = """
LIMIT = 3
def strict(event): return "HIGH" if event.tool_name == "terminal" else "LOW"
def failing(event): raise LookupError("no such list")
def odd(event): return "SEVERE"
"""


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Make a module of this source, and give its name."""
    made: list[str] = []

    def module(source: str) -> str:
        name = f"module_{uuid.uuid4().hex}"
        (tmp_path / f"{name}.py").write_text(source)
        importlib.invalidate_caches()
        made.append(name)
        return name

    sys.path.insert(0, str(tmp_path))
    yield module
    sys.path.remove(str(tmp_path))
    for name in made:
        sys.modules.pop(name, None)


def terminal(command: str, risk: Risk = "UNKNOWN") -> ActionEvent:
    update = {"action": TerminalAction(command=command)}
    return builders.action("terminal", risk=risk).model_copy(update=update)


def assess_risk(name: str, event: ActionEvent) -> Risk:
    [(analyzer_name, analyzer)] = load_analyzers((name,), WORKSPACE, frozenset({"look"}))
    assert analyzer_name == name
    return analyzer(event)


def test_analyzers_come_in_the_order_of_their_names() -> None:
    analyzers = load_analyzers(("rules", "model"), WORKSPACE, frozenset())
    event = terminal("rm -rf /", risk="LOW")
    assert [(name, analyzer(event)) for name, analyzer in analyzers] == [
        ("rules", "HIGH"),
        ("model", "LOW"),
    ]
    assert load_analyzers((), WORKSPACE, frozenset()) == []


def test_the_rules_know_which_tools_only_read() -> None:
    assert assess_risk("rules", builders.action("look")) == "LOW"
    assert assess_risk("rules", builders.action("change")) == "UNKNOWN"


def test_somebodys_own_analyzer_is_asked(write: Write) -> None:
    name = f"{write(OWN)}:strict"
    assert assess_risk(name, terminal("ls")) == "HIGH"
    assert assess_risk(name, builders.action("look")) == "LOW"


@pytest.mark.parametrize(
    ("source", "reference", "reason"),
    [
        ("", "nowhere_at_all:judge", "module 'nowhere_at_all' cannot be found"),
        ("", "strict", "name it `model`, `rules` or `module:attribute`"),
        ("", "{module}:", "name it `model`, `rules` or `module:attribute`"),
        ("", "{module}:strict", "has no attribute 'strict'"),
        (OWN, "{module}:LIMIT", "it is a int, not a function"),
        ("raise SystemExit(3)", "{module}:strict", "SystemExit: 3"),
        ("1 / 0", "{module}:strict", "ZeroDivisionError: division by zero"),
    ],
)
def test_without_its_analyzer_every_action_is_of_high_risk(
    write: Write, caplog: pytest.LogCaptureFixture, source: str, reference: str, reason: str
) -> None:
    name = reference.format(module=write(source))
    with caplog.at_level(logging.ERROR):
        assert assess_risk(name, builders.action("look")) == "HIGH"
    assert reason in caplog.text
    assert f"Security analyzer {name!r} cannot be used" in caplog.text


def test_what_an_analyzer_raises_is_the_callers_business(write: Write) -> None:
    with pytest.raises(LookupError, match="no such list"):
        assess_risk(f"{write(OWN)}:failing", terminal("ls"))


def test_an_answer_that_is_no_risk_is_a_failure(write: Write) -> None:
    with pytest.raises(ValueError, match=r"must give one of .*'HIGH'\), not 'SEVERE'"):
        assess_risk(f"{write(OWN)}:odd", terminal("ls"))
