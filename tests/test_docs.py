"""The code of the documentation runs, its batches parse, and its commands exist."""

import json
import re
import shlex
import sys
import tomllib
from asyncio import create_subprocess_exec, create_task
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from typer.main import get_command

from perdure.agent.discussion.spec import parse_discussion
from perdure.cli.main import make_app
from perdure.datasets.batch import parse_batch_toml
from perdure.embedded.temporal import TemporalServer
from perdure.settings.settings import Settings
from tests.cli.command import Perdure, clean_environment, find_address, wait_for_line
from tests.cli.conftest import drain_stderr
from tests.record_reference import PAGES as RECORDED_PAGES
from tests.secrets.keys import key_setting

ROOT = Path(__file__).parents[1]
REFERENCE = {ROOT / "docs" / name for name in RECORDED_PAGES}
PAGES = (ROOT / "README.md", *sorted({*(ROOT / "docs").glob("*.md")} - REFERENCE))
CLIENT_PAGES = tuple(sorted((ROOT / "docs" / "clients").glob("*.md")))
"""Pages of others' clients, whose code tests/gateway runs with these."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MODEL = re.compile(r'"(openai|anthropic)/[\w.-]+"')
LINK = re.compile(r"\]\((?!http)([^)#]*)#?([^)]*)\)")
"""The file and the heading that a link leads to."""
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
MODULE = re.compile(r"# \w+\.py\n")
"""The first line of a module, which tests/test_extending.py installs."""


def blocks(language: str) -> Iterator[Any]:
    for page in PAGES:
        for number, (name, code) in enumerate(BLOCK.findall(page.read_text()), 1):
            if name == language and not MODULE.match(code):
                yield pytest.param(code, id=f"{page.name}-{number}")


def commands() -> Iterator[Any]:
    """Yield the lines of code that begin with `perdure `, as people would type them."""
    for page in (*PAGES, *CLIENT_PAGES):
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if re.match(r"(    |\$ )?perdure [a-z-]", line) and "`" not in line[:12]:
                yield pytest.param(line.strip().removeprefix("$ "), id=f"{page.name}:{number}")


@pytest_asyncio.fixture(scope="module")
async def stack(
    temporal_server: TemporalServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Mapping[str, str]]:
    """The environment of a Temporal server, a store and a worker."""
    folder = tmp_path_factory.mktemp("docs")
    adder = folder / "adder.json"
    adder.write_text(json.dumps({"answers": ["5"] * 9}))
    env = {
        **clean_environment(),
        "PERDURE_AGENTS": json.dumps({"adder": {"model": f"scripted:{adder}"}}),
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": (folder / "store").as_uri(),
        "PERDURE_TASK_QUEUE": f"docs-{uuid4()}",
        "PERDURE_DATA": str(folder / "data"),
        "PERDURE_APP_WRITERS": '["*"]',
        "PERDURE_SECRET_KEYS": key_setting("docs"),
    }
    async with Perdure(env).start("worker") as worker:
        await wait_for_line(worker.stderr, "polls")
        draining = create_task(drain_stderr(worker.stderr))
        yield env
        worker.terminate()
        await worker.wait()
        await draining


@pytest_asyncio.fixture(scope="module")
async def gateway(
    stack: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Mapping[str, str]]:
    """The environment of the address and the key of a gateway before the same servers."""
    servers = Perdure(stack)
    key = await servers("key", "create", "docs", "--user", "anna")  # whose batches are others
    trusting = servers.with_env(PERDURE_GATEWAY_TRUSTED="true")
    async with trusting.start("gateway", "--port", "0") as process:
        line = await wait_for_line(process.stderr, "serves http")
        draining = create_task(drain_stderr(process.stderr))
        yield {
            **clean_environment(),
            "PERDURE_DATA": str(tmp_path_factory.mktemp("elsewhere")),
            "PERDURE_GATEWAY": find_address(line),
            "PERDURE_GATEWAY_KEY": key.out.strip(),
        }
        process.terminate()
        await process.wait()
        await draining


def programs(*, over_gateway: bool) -> Iterator[Any]:
    """Yield the blocks of Python that run there: some are about a gateway."""
    for block in blocks("python"):
        if over_gateway or "HttpClient" not in block.values[0]:
            marks = () if block.id.startswith("README") else pytest.mark.long
            yield pytest.param(*block.values, id=block.id, marks=marks)


@pytest.mark.parametrize("code", [*programs(over_gateway=False)])
async def test_the_python_of_the_documentation_runs(
    code: str, stack: Mapping[str, str], tmp_path: Path
) -> None:
    await run_block(code, stack, tmp_path)


@pytest.mark.longest
@pytest.mark.parametrize("code", [*programs(over_gateway=True)])
async def test_the_python_of_the_documentation_runs_over_a_gateway(
    code: str, gateway: Mapping[str, str], tmp_path: Path
) -> None:
    await run_block(code, gateway, tmp_path)


async def run_block(code: str, env: Mapping[str, str], tmp_path: Path) -> None:
    """Run a block as a program. Raises AssertionError if it fails."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"answers": ["5"] * 4}))
    (tmp_path / "sums.jsonl").write_text('{"id": "a", "input": "2 + 3?", "target": "5"}\n')
    code = MODEL.sub(json.dumps(f"scripted:{script}"), code)
    code = code.replace("https://perdure.example.org", env.get("PERDURE_GATEWAY", ""))
    code = code.replace("https://example.org/hooks", "https://8.8.8.8/hooks")  # needs no names
    code = code.replace("file:///tmp/perdure-store", (tmp_path / "store").as_uri())
    if re.search(r"^(async for|await|\w+ = await) ", code, re.MULTILINE):
        body = "".join(f"    {line}\n" for line in code.splitlines())
        code = f"import asyncio\nasync def main():\n{body}\nasyncio.run(main())\n"
    run = await create_subprocess_exec(
        *(sys.executable, "-c", code),
        cwd=tmp_path,
        env={**env, "PYTHONPATH": str(ROOT)},
        stdout=PIPE,
        stderr=PIPE,
    )
    _, errors = await run.communicate()
    assert run.returncode == 0, errors.decode()


@pytest.mark.parametrize("code", [*blocks("toml")])
def test_the_batches_and_discussions_of_the_documentation_are_specs(code: str) -> None:
    if "project" in (table := tomllib.loads(code)):
        assert table["project"]["entry-points"]
    elif "experiments" in table:
        assert Settings(**table).experiments
    elif "topic" in table:
        parse_discussion(table)
    else:
        parse_batch_toml(code)


@pytest.mark.parametrize("line", [*commands()])
def test_the_commands_of_the_documentation_exist(line: str) -> None:
    words = shlex.split(re.split(r"\s+#\s|\s+[|>]\s+[^\s|]*/|\s&&\s", line)[0].replace("…", "x"))
    for path in expand(words[1:]):
        check_command(path)


def expand(words: list[str]) -> Iterator[list[str]]:
    """Yield a command line for each of `a | b | c`, which share what stands before and after."""
    names = [at for at, word in enumerate(words) if word == "|"]
    if not names:
        yield words
        return
    first, last = names[0] - 1, names[-1] + 1
    for name in words[first : last + 1 : 2]:
        yield [*words[:first], name, *words[last + 1 :]]


def check_command(words: list[str]) -> None:
    """Fail unless the command and all of its options exist."""
    command: Any = get_command(make_app())
    if words[:1] == ["--gateway"]:  # stands before every command
        words = words[2:]
    while hasattr(command, "get_command"):
        assert words, "a group needs a command"
        subcommand = command.get_command(None, words[0])
        assert subcommand is not None, f"there is no command {words[0]!r}"
        command, words = subcommand, words[1:]
    known = {name for option in command.params for name in option.opts + option.secondary_opts}
    options = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    assert set(options) <= known | {"--help", "-h"}


@pytest.mark.parametrize(
    "page", [*PAGES, *CLIENT_PAGES, *sorted(REFERENCE)], ids=lambda page: page.name
)
def test_the_links_of_the_documentation_lead_to_files_and_headings(page: Path) -> None:
    for link, anchor in LINK.findall(page.read_text()):
        target = page.parent / link if link else page
        assert target.exists(), link
        headings = HEADING.findall(target.read_text()) if anchor else ()
        anchors = {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}
        assert not anchor or anchor in anchors, f"{link}#{anchor}"


@pytest.mark.parametrize("name", RECORDED_PAGES)
def test_the_reference_is_that_of_the_code(name: str) -> None:
    message = "run `python -m tests.record_reference`"
    assert (ROOT / "docs" / name).read_text() == RECORDED_PAGES[name](), message
