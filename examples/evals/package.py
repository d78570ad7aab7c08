"""The chat sets of the `evals` package, read from the file that it is downloaded as.

Nothing of it is installed or run: unpacked it would take 755 MB, and ask for 50 other packages.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import yaml  # type: ignore[import-untyped]

FOLDER = Path(sys.prefix) / "evals"

REGISTRY = "evals/registry/evals/"
DATA = "evals/registry/data/"

GRADED_BY = {
    "evals.elsuite.basic.match:Match": "match",
    "evals.elsuite.basic.includes:Includes": "includes",
}
"""The sets in use: those that upstream grades by comparing texts, and how it does."""


class PackageMissing(Exception):
    """The text says how to get it."""


@dataclass(frozen=True)
class Line:
    """A line of a set, counted from 1."""

    number: int
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class ChatSet:
    """The first lines of a set; `graded` is a value of GRADED_BY."""

    name: str
    graded: str
    lines: tuple[Line, ...]


def chat_sets(most: int) -> list[ChatSet]:
    """Every set in the order of the names, with at most so many lines. Raises PackageMissing."""
    with ZipFile(_wheel()) as wheel:
        graded = _graded(wheel)
        return [
            ChatSet(
                name.removesuffix(".jsonl"), graded[name], tuple(islice(_lines(wheel, name), most))
            )
            for name in sorted(graded.keys() & _data(wheel))
        ]


def _wheel() -> Path:
    wheels = sorted(FOLDER.glob("evals-*.whl"))
    if not wheels:
        raise PackageMissing(
            "The evals package is missing: run `pip download --no-deps --require-hashes "
            f"--only-binary :all: --dest {FOLDER} -r examples/evals/requirements.lock`."
        )
    return wheels[-1]


def _data(wheel: ZipFile) -> set[str]:
    return {name.removeprefix(DATA) for name in wheel.namelist() if name.startswith(DATA)}


def _graded(wheel: ZipFile) -> dict[str, str]:
    """By the name of its file: how a set is graded; a set with options of its own is left out."""
    contents: dict[str, str] = {}
    for name in sorted(wheel.namelist()):
        if name.startswith(REGISTRY) and name.endswith((".yaml", ".yml")):
            for spec in (yaml.safe_load(wheel.read(name)) or {}).values():
                how = GRADED_BY.get(str(spec.get("class"))) if isinstance(spec, dict) else None
                options = spec.get("args") or {} if how else {}
                if how and options.keys() == {"samples_jsonl"}:
                    contents.setdefault(options["samples_jsonl"], how)
    return contents


def _lines(wheel: ZipFile, name: str) -> Iterator[Line]:
    with wheel.open(DATA + name) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield Line(number, _fields(line))


def _fields(line: bytes) -> Mapping[str, Any]:
    """Nothing where the line is no JSON object, as a few are not."""
    try:
        fields = json.loads(line)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
