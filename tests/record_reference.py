"""Write docs/reference.md and docs/commands.md: `python -m tests.record_reference`."""

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel
from typer.cli import get_docs_for_click
from typer.main import get_command

from perdure.agent.discussion.spec import DiscussionSpec
from perdure.agent.spec import Agent
from perdure.cli.main import make_app
from perdure.evaluation.spec import BatchSpec
from perdure.settings.settings import ENV_PREFIX, Settings

DOCS = Path(__file__).parents[1] / "docs"

ROOTS: Mapping[str, tuple[type[BaseModel], str]] = {
    "The agent": (
        Agent,
        "The fields of an `Agent`, as in Python, in a file for `--agent-file`, in the table "
        "`[agent]` of a batch, and in `perdure configure ID key=value`. Times are in seconds.",
    ),
    "A batch": (
        BatchSpec,
        "The keys of the TOML file of `perdure batch run`. [evaluation.md](evaluation.md) "
        "describes them with examples.",
    ),
    "A discussion": (
        DiscussionSpec,
        "The keys of the TOML file of `perdure discuss`; the table `agent` has fields that all "
        "agents share. [discussions.md](discussions.md) describes them with an example.",
    ),
}

MAX_SHOWN_BOUND = 1e8
"""A larger bound, such as ten years in seconds, tells a reader nothing."""

HEAD = """# Reference

Every field of an agent, of a batch and of a discussion, and every setting. This page is made from
the code by `python -m tests.record_reference`, and a test compares the two.
"""


def make_reference() -> str:
    """Make the page of all fields and settings."""
    pages, seen = [HEAD], set[type[BaseModel]]()
    for title, (model, introduction) in ROOTS.items():
        pages.append(f"## {title}\n\n{introduction}\n")
        pages += map(_describe_model, _list_models(model, seen))
    pages.append(_describe_settings())
    return "\n".join(pages)


def make_commands() -> str:
    """Make the page of all commands, by Typer itself."""
    command = get_command(make_app())
    context = typer.Context(command, info_name="perdure")
    page = get_docs_for_click(obj=command, ctx=context, name="perdure", title="Commands")
    return "\n".join(line.rstrip() for line in page.splitlines()).strip() + "\n"


def _list_models(root: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    """Yield a model, and the models of its fields that are not in `seen`, which grows."""
    waiting = [root]
    seen.add(root)
    while waiting:
        model = waiting.pop(0)
        yield model
        for field in model.model_fields.values():
            for part in _models_of(field.annotation):
                if part not in seen:
                    seen.add(part)
                    waiting.append(part)


def _models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_of(argument)


def _describe_model(model: type[BaseModel]) -> str:
    schema = model.model_json_schema(by_alias=False)
    definitions = schema.get("$defs", {})
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    docs = _field_docs(model)
    rows = [
        (
            f"`{name}`",
            _describe_type(field),
            _describe_default(model, name),
            docs.get(name, ""),
        )
        for name, field in schema["properties"].items()
    ]
    doc = inspect.cleandoc(model.__doc__ or "")
    return f"### {model.__name__}\n\n{doc}\n\n{_table(('Field', 'Type', 'Default', ''), rows)}"


def _field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Read the strings under the fields of a model and of the models that it extends."""
    docs: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base.__module__.startswith("perdure."):
            docs |= dict(_docs_in(base))
    return docs


def _docs_in(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    source = textwrap.dedent(inspect.getsource(model))
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(doc))),
            ):
                yield name, " ".join(doc.split())


def _describe_type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": "#/$defs/JsonValue"}:
            return "any value"
        case {"$ref": str(ref)}:
            name = ref.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"anyOf": list(kinds)} | {"oneOf": list(kinds)}:
            names = [_describe_type(kind) for kind in kinds if kind.get("type") != "null"]
            return " or ".join(dict.fromkeys(names))
        case {"allOf": [dict(only)]}:
            return _describe_type(only)
        case {"enum": list(values)}:
            return ", ".join(f"`{value}`" for value in values)
        case {"const": value}:
            return f"`{value}`"
        case {"type": "array", "items": dict(items)}:
            return f"list of {_describe_type(items)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"table of {_describe_type(values)}"
        case {"type": "object"} | {"type": "array"}:
            return "table" if schema["type"] == "object" else "list"
        case {"type": str(kind)}:
            return " ".join([kind, *_describe_bounds(schema)])
    return "any value"


def _describe_bounds(schema: Mapping[str, Any]) -> Iterator[str]:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    for key, sign in signs.items():
        if schema.get(key, inf) < MAX_SHOWN_BOUND:
            yield f"{sign} {schema[key]:,g}"


def _describe_default(model: type[BaseModel], name: str) -> str:
    field = model.model_fields[name]
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    if default is None or isinstance(default, Path):
        return ""
    if isinstance(default, BaseModel):
        return f"[{type(default).__name__}](#{type(default).__name__.lower()})"
    return f"`{json.dumps(default, ensure_ascii=False, default=_dump_model)}`"


def _dump_model(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(mode="json", exclude_defaults=True)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def _describe_settings() -> str:
    docs = _field_docs(Settings)
    rows = [
        (f"`{ENV_PREFIX}{name.upper()}`", _describe_default(Settings, name), docs.get(name, ""))
        for name in Settings.model_fields
    ]
    introduction = (
        "A setting is a variable of the environment, or a key in `perdure.toml` in the current "
        "folder or in the user's configuration folder, in lower case and without the prefix. The "
        "environment comes first. Temporal, S3 and the providers of models have variables of "
        "their own: `TEMPORAL_*`, `AWS_*`, `OPENAI_API_KEY` and so on."
    )
    table = _table(("Variable", "Default", ""), rows)
    nested = map(_describe_model, list(_list_models(Settings, set()))[1:])
    return "\n\n".join([f"## Settings\n\n{introduction}\n\n{table}", *nested])


PAGES = {"reference.md": make_reference, "commands.md": make_commands}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make())
        print(f"docs/{name}", file=sys.stderr)
