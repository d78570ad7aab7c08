"""The image and the Compose file: what linters say, and what perdure needs of them."""

import re
import shlex
import stat
from typing import Any

import pytest

from perdure.operations.worker.options import parse_options
from tests.deploy.tools import FOLDER, ROOT, ask_tool, needs_tools, run_tool

DOCKERFILE = (FOLDER / "Dockerfile").read_text()
COMPOSE = FOLDER / "compose" / "compose.yaml"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = ask_tool("compose", str(COMPOSE))
    return services


@needs_tools
def test_hadolint_finds_nothing_in_the_image() -> None:
    done = run_tool("hadolint", "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


@needs_tools
def test_compose_lint_finds_nothing_grave() -> None:
    done = run_tool("compose-lint", str(COMPOSE))
    assert done.returncode == 0, done.stdout


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    names = [name for words in copied for name in words.split()]
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    assert len(names) >= 9
    for name in names:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in allowed


def test_the_last_stage_is_of_a_user_without_rights() -> None:
    last = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert "pip install" not in last


@needs_tools
def test_workers_by_kind_are_told_options_that_they_know(services: dict[str, Any]) -> None:
    kinds = set[str]()
    for name in ("workflows", "model", "tools"):
        command, service = services[name]["command"], services[name]
        memory = command.index("--max-memory")
        options = parse_options(command[1:memory] + command[memory + 2 :])
        kinds |= options.kinds
        assert options.grace < float(service["stop_grace_period"].removesuffix("s"))
        assert f":{options.health_port}/readyz" in service["healthcheck"]["test"][-1]
    assert kinds == {"model", "tools", "workflows"}


@needs_tools
def test_processes_of_perdure_are_confined_and_only_the_machine_reaches_them(
    services: dict[str, Any],
) -> None:
    own = {name: it for name, it in services.items() if it["image"].startswith("perdure:")}
    assert own.keys() == {"setup", "workflows", "model", "tools", "gateway"}
    for service in own.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
    published = [port for it in services.values() for port in it.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)
    keyed = [name for name, it in own.items() if "OPENAI_API_KEY" in it["environment"]]
    assert keyed == ["model"]


@needs_tools
def test_every_file_that_is_mounted_is_there(services: dict[str, Any]) -> None:
    mounted = [it for service in services.values() for it in service.get("volumes", ())]
    files = [COMPOSE.parent / it.split(":")[0] for it in mounted if it.startswith("./")]
    assert len(files) >= 4
    assert all(file.is_file() for file in files)


def test_the_variables_that_compose_wants_are_in_the_example() -> None:
    wanted = set(re.findall(r"\$\{(\w+)", COMPOSE.read_text())) - {"PERDURE_VERSION"}
    lines = (COMPOSE.parent / "example.env").read_text().splitlines()
    assert wanted == {line.partition("=")[0] for line in lines if line and line[0] != "#"}


def test_scripts_can_be_run() -> None:
    for script in COMPOSE.parent.glob("*.sh"):
        assert script.stat().st_mode & stat.S_IXUSR
        assert shlex.split(script.read_text().splitlines()[0]) == ["#!/bin/sh"]
