"""The work of the `perdure batch` commands, imported when one is used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.cli.batch import compare as compare
    from perdure.cli.batch import control as control
    from perdure.cli.batch import export as export
    from perdure.cli.batch import report as report
    from perdure.cli.batch import results as results
    from perdure.cli.batch import retune as retune
    from perdure.cli.batch import start as start
    from perdure.cli.batch import status as status


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return import_module(f"{__name__}.{name}")
