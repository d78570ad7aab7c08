"""Groups of commands: the module of a command is imported when it is used."""

import importlib
from collections.abc import Mapping
from typing import Any, ClassVar

from typer.core import TyperGroup
from typer.main import get_command


class Lazy(TyperGroup):
    """`modules` begins the names of their modules; `told` says in a line what each is for."""

    modules: ClassVar[str]
    told: ClassVar[Mapping[str, str]]

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(self.told)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in self.told:
            return None
        return get_command(importlib.import_module(f"{self.modules}{cmd_name}").app)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(self.told.items()))
