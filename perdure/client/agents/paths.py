"""The paths of an agent, made absolute: the worker has another working directory."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from perdure.agent.layers import Fields
from perdure.testing.scripted_model import SCRIPTED_PREFIX

PathResolver: TypeAlias = Callable[[str], str]


def resolve_paths(fields: Fields, folder: Path | None = None) -> dict[str, Any]:
    """Make the paths of fields absolute, which begin at a folder, by default the current one."""
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
