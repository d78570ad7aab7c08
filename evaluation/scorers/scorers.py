"""Every scorer there is: a new one is a file and a line here."""

from typing import Annotated, Any, TypeAlias, get_args

from pydantic import BeforeValidator, Field

from evaluation.scorers.command import Command
from evaluation.scorers.custom import Custom
from evaluation.scorers.exact import Exact
from evaluation.scorers.includes import Includes
from evaluation.scorers.json_value import Json
from evaluation.scorers.match import Match
from evaluation.scorers.model_graded import ModelGraded

Kinds: TypeAlias = Exact | Includes | Match | Json | Command | ModelGraded | Custom

KINDS: tuple[str, ...] = tuple(one.model_fields["kind"].default for one in get_args(Kinds))


def _table(given: Any) -> Any:
    """A scorer may be named by its kind alone, or by `module:attribute`."""
    if not isinstance(given, str):
        return given
    if ":" in given:
        return {"kind": "custom", "function": given}
    if given not in KINDS:
        raise ValueError(
            f"there is no scorer {given!r}: there are {', '.join(KINDS)}; name one of your own as "
            "module:attribute"
        )
    return {"kind": given}


AnyScorer: TypeAlias = Annotated[
    Annotated[Kinds, Field(discriminator="kind")], BeforeValidator(_table)
]
