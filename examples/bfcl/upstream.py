"""Functions of the `bfcl-eval` package; no other file imports it.

Its data, its back-end classes and its checker need nothing but `mpmath`: it is installed with
`pip install --no-deps bfcl-eval mpmath`, and the rest of what it asks for is never imported.
"""

import copy
import inspect
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any
from uuid import uuid4

from bfcl_eval.constants.executable_backend_config import (
    CLASS_FILE_PATH_MAPPING,
    MULTI_TURN_FUNC_DOC_FILE_MAPPING,
    STATELESS_CLASSES,
)
from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI
from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker

CATEGORY = "multi_turn_base"
JSON_TYPES: dict[str, str] = GORILLA_TO_OPENAPI


def entries() -> list[dict[str, Any]]:
    """The samples of the category, as they are published."""
    return _lines(f"BFCL_v4_{CATEGORY}.json")


def ground_truths() -> dict[str, list[list[str]]]:
    """By sample, for each turn: the Python calls that do what the user asks for."""
    answers = _lines("possible_answer", f"BFCL_v4_{CATEGORY}.json")
    return {answer["id"]: answer["ground_truth"] for answer in answers}


def documents(class_name: str) -> list[dict[str, Any]]:
    """Describe the methods of a back-end to a model."""
    return _lines("multi_turn_func_doc", MULTI_TURN_FUNC_DOC_FILE_MAPPING[class_name])


def _lines(*path: str) -> list[dict[str, Any]]:
    text = files("bfcl_eval").joinpath("data", *path).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@cache
def backend_class(class_name: str) -> type[Any]:
    module = import_module(CLASS_FILE_PATH_MAPPING[class_name])
    backend = getattr(module, class_name)
    assert isinstance(backend, type)
    return backend


@cache
def parameters(class_name: str, method: str) -> tuple[str, ...]:
    """The names of a method's parameters in the order of its signature.

    The order in the documents is not always the same, and positional calls go by the signature.
    """
    signature = inspect.signature(getattr(backend_class(class_name), method))
    return tuple(signature.parameters)[1:]


def backend(entry: Mapping[str, Any], class_name: str) -> Any:
    """A new instance, in the state in which a sample starts."""
    instance = backend_class(class_name)()
    if class_name not in STATELESS_CLASSES:
        config = copy.deepcopy(entry["initial_config"].get(class_name, {}))
        instance._load_scenario(config, long_context=False)
    return instance


def execute(entry: Mapping[str, Any], calls: Sequence[str]) -> list[str]:
    """Make the calls by upstream's own machinery on new back-ends, and return their results."""
    model = _model_name()
    try:
        results, _ = multi_turn_utils.execute_multi_turn_func_call(
            func_call_list=list(calls),
            initial_config=entry["initial_config"],
            involved_classes=entry["involved_classes"],
            model_name=model,
            test_entry_id=entry["id"],
        )
    finally:
        _forget(model)
    return list(results)


def check(
    entry: Mapping[str, Any],
    turns: Sequence[Sequence[Sequence[str]]],
    truth: Sequence[Sequence[str]],
) -> str | None:
    """Return the reason why upstream's checker refuses the calls (by turn and step), else None."""
    model = _model_name()
    decoded = [[list(step) for step in turn] for turn in turns]
    due = [list(calls) for calls in truth]
    try:
        verdict = multi_turn_checker(decoded, due, entry, CATEGORY, model)
    finally:
        _forget(model)
    return None if verdict["valid"] else str(verdict["error_message"])


def _model_name() -> str:
    # Upstream keeps its instances in a global by this name, so each use needs one of its own.
    return f"perdure_{uuid4().hex}"


def _forget(model: str) -> None:
    globals_before = vars(multi_turn_utils)
    for name in [name for name in globals_before if name.startswith(model)]:
        del globals_before[name]
