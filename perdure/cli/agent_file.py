"""Agents as TOML: files that people write, and the agent in force of a conversation."""

import json
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from perdure.agent.fields import Fields, find_unknown_field
from perdure.errors import Invalid
from perdure.testing.scripted_model import SCRIPTED_PREFIX

PathResolver: TypeAlias = Callable[[str], str]


def read_agent_file(path: Path) -> Fields:
    """Read the fields of an agent from TOML; its paths begin at its folder. Raises Invalid."""
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise Invalid(f"The agent file {path} cannot be read ({reason}).") from error
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{path} is not valid TOML: {error}.") from error
    check_fields(fields, str(path))
    return resolve_paths(fields, path.absolute().parent)


def check_fields(fields: Fields, source: str) -> None:
    """Raises Invalid for a key that no agent has."""
    if sentence := find_unknown_field(fields):
        raise Invalid(f"{source}: {sentence}")


def resolve_paths(fields: Fields, folder: Path | None = None) -> dict[str, Any]:
    """Make paths absolute: the worker has another working directory."""
    resolve = partial(_resolve_path, folder or Path.cwd())
    resolved = dict(fields)
    for name in ("model", "title_model"):
        if name in fields:
            resolved[name] = _resolve_model(fields[name], resolve)
    if isinstance(names := fields.get("fallbacks"), list | tuple):
        resolved["fallbacks"] = [_resolve_model(model, resolve) for model in names]
    if isinstance(workspace := fields.get("workspace"), str):
        resolved["workspace"] = resolve(workspace)
    skills = fields.get("skills")
    if isinstance(skills, dict) and isinstance(skills.get("folders"), list | tuple):
        resolved["skills"] = {**skills, "folders": [*map(resolve, map(str, skills["folders"]))]}
    return resolved


def _resolve_path(folder: Path, path: str) -> str:
    return str((folder / Path(path).expanduser()).absolute())


def _resolve_model(model: Any, resolve: PathResolver) -> Any:
    """Make the path of a `scripted:` model absolute."""
    if isinstance(model, dict):
        name = {"name": _resolve_model(model["name"], resolve)} if "name" in model else {}
        return {**model, **name}
    if not isinstance(model, str) or not model.startswith(SCRIPTED_PREFIX):
        return model
    return f"{SCRIPTED_PREFIX}{resolve(model.removeprefix(SCRIPTED_PREFIX))}"


def dump_toml(fields: Fields) -> str:
    """Write fields without None as TOML that `tomllib` reads back."""
    tables = {name: value for name, value in fields.items() if isinstance(value, dict)}
    lines = [f"{name} = {_inline(fields[name])}" for name in fields if name not in tables]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{_key(key)} = {_inline(table[key])}" for key in table)]
    return "\n".join(lines).lstrip("\n")


def _inline(value: Any) -> str:
    match value:
        case dict():
            return f"{{ {', '.join(f'{_key(key)} = {_inline(value[key])}' for key in value)} }}"
        case list() | tuple():
            return f"[{', '.join(map(_inline, value))}]"
        case str():
            return _quote(value)
        case _:
            return json.dumps(value)


def _quote(text: str) -> str:
    """Quote as JSON does, which TOML reads but for one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "a").isalnum() else _quote(name)
