"""Fallback models, for when a model cannot answer."""

from dataclasses import replace

from perdure.agent.calls.completion import Completion
from perdure.models.model import (
    Complete,
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    OnText,
    Request,
)


async def complete_with_fallbacks(
    complete: Complete, request: Request, on_text: OnText
) -> Completion:
    """Call the model and, if it fails, its fallbacks in order; return the first answer.

    Fallbacks are not called when the first model's context window is too small for the prompt,
    which is then condensed, nor at the end of a script. If every model fails, raises the error
    that is easiest to recover from: ModelUnavailable, then ContextOverflow, then ModelRefused.
    """
    errors: list[ModelError] = []
    for spec in (request.model, *request.fallbacks):
        try:
            return await complete(replace(request, model=spec, fallbacks=()), on_text)
        except ModelError as error:
            errors.append(error)
            if len(errors) == 1 and error.code in ("context_overflow", "script_exhausted"):
                raise
    raise _most_recoverable(errors)


def _most_recoverable(errors: list[ModelError]) -> ModelError:
    for error_type in (ModelUnavailable, ContextOverflow):
        for error in errors:
            if isinstance(error, error_type):
                return error
    first, *others = errors
    if not others or not isinstance(first, ModelRefused):
        return first
    return ModelRefused(first.code, f"{first} Nor did a fallback answer: {others[0]}")
