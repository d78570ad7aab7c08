"""The ways to run a conversation that are measured: a store, a way to the model, a tool."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

PLAIN_TOOL = "bench.tools:add"

BRIEF_TOOL = "bench.tools:add_briefly"
"""The tool of the `+brief` shapes, which workers may run within a workflow task."""

BRIEF_AGENT: dict[str, Any] = {"local_activities": True}
"""What the agent of a `+brief` shape has besides; a checkout ignores what it does not know."""

CONDENSER = {"kind": "llm_summary", "max_size": 100}
"""A condenser that is at work ten times in 500 steps."""


@dataclass(frozen=True)
class Shape:
    """A way to run a conversation: where its events go, how the model is asked, which tool runs.

    `condenses` says that the agent has a condenser that is at work in 500 steps.
    """

    on_s3: bool = False
    over_http: bool = False
    brief: bool = False
    condenses: bool = False

    @property
    def name(self) -> str:
        flags = {"http": self.over_http, "brief": self.brief, "condenser": self.condenses}
        return "+".join(["s3" if self.on_s3 else "files", *(name for name in flags if flags[name])])

    def agent(self, script: str, file: str, api_base: str, **fields: Any) -> dict[str, Any]:
        """Return the fields of an agent whose model answers by a script of `file`."""
        model = {"name": f"scripted:{file}#{script}"}
        if self.over_http:
            model = {"name": f"openai/{script}", "api_base": api_base}
        return {
            "model": model,
            "tools": [BRIEF_TOOL if self.brief else PLAIN_TOOL],
            "limits": {"max_iterations": 1_000_000},
            "idle_timeout": 0.001,
            **(BRIEF_AGENT if self.brief else {}),
            **({"condenser": CONDENSER} if self.condenses else {}),
            **fields,
        }


SHAPES = tuple(Shape(on_s3, http) for http, on_s3 in product((False, True), repeat=2))
BRIEF_SHAPES = tuple(Shape(shape.on_s3, shape.over_http, brief=True) for shape in SHAPES)
CONDENSER_SHAPES = tuple(Shape(shape.on_s3, shape.over_http, condenses=True) for shape in SHAPES)

BY_NAME = {shape.name: shape for shape in (*SHAPES, *BRIEF_SHAPES, *CONDENSER_SHAPES)}


def choose_shapes(names: Sequence[str], default: Iterable[Shape]) -> list[Shape]:
    """Return the shapes of these names, or the default ones without any. Raises KeyError."""
    return [BY_NAME[name] for name in names] or list(default)
