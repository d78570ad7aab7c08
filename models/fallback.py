"""Who is asked next when a model cannot answer."""

from dataclasses import replace

from agent.completion import Completion
from models.model import (
    Complete,
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    OnText,
    Request,
)


async def first_answer(complete: Complete, request: Request, on_text: OnText) -> Completion:
    """The answer of the model or, whatever its trouble is, of the first fallback that has one.

    Two kinds of trouble no fallback mends: the model's own context window is too small for the
    prompt, which is then condensed, and the end of a script. Where nobody answers, what is raised
    is what helps soonest: waiting, if anybody was unavailable, then condensing, then a person.
    """
    failed: list[ModelError] = []
    for spec in (request.model, *request.fallbacks):
        try:
            return await complete(replace(request, model=spec, fallbacks=()), on_text)
        except ModelError as error:
            failed.append(error)
            if len(failed) == 1 and error.code in ("context_overflow", "script_exhausted"):
                raise
    raise _most_hopeful(failed)


def _most_hopeful(failed: list[ModelError]) -> ModelError:
    for kind in (ModelUnavailable, ContextOverflow):
        for error in failed:
            if isinstance(error, kind):
                return error
    first, *others = failed
    if not others or not isinstance(first, ModelRefused):
        return first
    return ModelRefused(first.code, f"{first} Nor did a fallback answer: {others[0]}")
