"""The analyzers that tell the risk of an action."""

import logging
from collections.abc import Collection
from functools import partial
from pathlib import PurePath
from typing import cast, get_args

from perdure.agent.calls.risk import Analyze, model_risk
from perdure.events.risk import Risk
from perdure.events.tools import ActionEvent
from perdure.references import BadReference, import_reference, is_reference

logger = logging.getLogger(__name__)


def load_analyzers(
    names: tuple[str, ...], workspace: PurePath, read_only_names: Collection[str]
) -> list[tuple[str, Analyze]]:
    """The analyzers by name: `model`, `rules`, or `module:attribute` for one of your own.

    One that cannot be found takes every action for HIGH. What an analyzer raises is the caller's
    to take for HIGH as well.
    """
    return [(name, _analyzer(name, workspace, read_only_names)) for name in names]


def _analyzer(name: str, workspace: PurePath, read_only: Collection[str]) -> Analyze:
    match name:
        case "model":
            return model_risk
        case "rules":
            return partial(_assess_by_rules, workspace, read_only)
    try:
        return partial(_checked, name, load_analyzer(name))
    except (Exception, SystemExit) as error:
        # Another's code may raise anything; whatever it is, no action goes by unjudged.
        logger.error(
            "Security analyzer %r cannot be used, so every action counts as HIGH: %s: %s",
            *(name, type(error).__name__, error),
        )
        return lambda _: "HIGH"


def load_analyzer(name: str) -> Analyze:
    """Load an analyzer of the user's. Raises BadReference."""
    if not is_reference(name):
        raise BadReference("name it `model`, `rules` or `module:attribute`")
    if not callable(analyze := import_reference(name)):
        raise BadReference(f"it is a {type(analyze).__name__}, not a function")
    return cast(Analyze, analyze)


def _checked(name: str, analyze: Analyze, event: ActionEvent) -> Risk:
    risk = analyze(event)
    if risk not in get_args(Risk):
        raise ValueError(f"Analyzer {name!r} must give one of {get_args(Risk)}, not {risk!r}.")
    return risk


def _assess_by_rules(workspace: PurePath, read_only: Collection[str], event: ActionEvent) -> Risk:
    from perdure.tools.risk.rules import assess_by_rules  # its tables and parser are slow to load

    return assess_by_rules(event, workspace, event.tool_name in read_only)
