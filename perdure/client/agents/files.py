"""Agents in files: `agents/NAME.toml`, and `agents/NAME.md` with front matter and a prompt."""

import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from perdure.agent.fields import find_unknown_field
from perdure.agent.knowledge.skills import BadSkill, split_front_matter
from perdure.agent.named import Definition, check_definition
from perdure.client.agents.lines import find_toml_line, find_yaml_line
from perdure.client.agents.paths import resolve_paths
from perdure.errors import Invalid

AGENTS_FOLDER = "agents"
SUFFIXES = (".toml", ".md")

MAX_FILE_BYTES = 256 * 1024


def find_file(folder: Path, name: str) -> Path | None:
    """Return the file of an agent in a folder. Raises Invalid where there are two."""
    files = [path for suffix in SUFFIXES if (path := folder / f"{name}{suffix}").is_file()]
    if len(files) > 1:
        raise Invalid(f"{files[0]} and {files[1]} are both the agent {name!r}: keep one of them.")
    return next(iter(files), None)


def list_names(folder: Path) -> list[str]:
    """List the names of the agents in a folder, which need not exist."""
    if not folder.is_dir():
        return []
    return sorted({path.stem for path in folder.iterdir() if _is_agent(path)})


def _is_agent(path: Path) -> bool:
    """Tell whether a file is an agent: a page without front matter is for people."""
    if path.suffix not in SUFFIXES or not path.is_file():
        return False
    return path.suffix == ".toml" or path.read_bytes()[:3] == b"---"


def read_definition(path: Path) -> Definition:
    """Read a named agent, whose paths begin at the folder of its file. Raises Invalid."""
    text = read_text(path)
    table = parse_markdown(text, path) if path.suffix == ".md" else parse_toml(text, str(path))
    table = resolve_paths(table, path.absolute().parent)
    find_line = find_yaml_line if path.suffix == ".md" else find_toml_line
    here = Path.cwd()
    place = str(path.relative_to(here) if path.is_relative_to(here) else path)
    locate = partial(_locate, place, text, find_line)
    return check_definition(Definition(path.stem, place, table, locate))


def read_agent_fields(path: Path) -> dict[str, Any]:
    """Read the fields of an agent without a name, as `perdure show --agent` prints them.

    Its paths begin at its folder. Raises Invalid.
    """
    text = read_text(path)
    fields = parse_toml(text, str(path))
    if problem := find_unknown_field(fields):
        place = _locate(str(path), text, find_toml_line, problem.path)
        raise Invalid(f"{place}: {problem.sentence}")
    return resolve_paths(fields, path.absolute().parent)


def _locate(place: str, text: str, find_line: Any, path: str) -> str:
    line = find_line(text, path)
    return place if line is None else f"{place}:{line}"


def read_text(path: Path) -> str:
    """Read a file of an agent. Raises Invalid."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise Invalid(f"The agent file {path} has over {MAX_FILE_BYTES // 1024} KiB.")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise Invalid(f"The agent file {path} cannot be read ({reason}).") from error


def parse_toml(text: str, place: str) -> dict[str, Any]:
    """Parse the table of an agent. Raises Invalid, which names the line."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{place} is not valid TOML: {error}.") from error


def parse_markdown(text: str, path: Path) -> dict[str, Any]:
    """Parse front matter, and the text behind it as the prompt. Raises Invalid."""
    try:
        table, prompt = split_front_matter(text)
    except BadSkill as error:
        raise Invalid(f"{path}:1: The agent cannot be read: {error}.") from error
    if not table:
        raise Invalid(f"{path}:1: It has no front matter: begin it with a line ---, and keys.")
    fields = {str(key): _read_scalars(value) for key, value in table.items()}
    if isinstance(tools := fields.get("tools"), str):  # as files of other agents write them
        fields["tools"] = [name.strip() for name in tools.split(",") if name.strip()]
    if prompt.strip():
        fields["system_prompt"] = prompt.strip()
    return fields


def _read_scalars(value: Any) -> Any:
    """Return a value of front matter, in which scalars are texts, with its nulls as such."""
    if isinstance(value, Mapping):
        return {str(key): _read_scalars(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_read_scalars(item) for item in value]
    return None if value in ("null", "~") else value
