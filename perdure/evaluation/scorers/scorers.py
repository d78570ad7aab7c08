"""The list of all scorers: a new one is a file and a line here."""

from typing import Annotated, Any, TypeAlias, get_args

from pydantic import BeforeValidator, Field

from perdure.evaluation.scorers.command import CommandScorer
from perdure.evaluation.scorers.custom import CustomScorer
from perdure.evaluation.scorers.exact import Exact
from perdure.evaluation.scorers.includes import Includes
from perdure.evaluation.scorers.json_value import JsonMatch
from perdure.evaluation.scorers.match import Match
from perdure.evaluation.scorers.model_graded import ModelGraded
from perdure.references import find_entry_points

ScorerKind: TypeAlias = (
    Exact | Includes | Match | JsonMatch | CommandScorer | ModelGraded | CustomScorer
)

SCORER_GROUP = "perdure.scorers"
"""The entry points of scoring functions of other packages."""

SCORER_KINDS: tuple[str, ...] = tuple(
    kind.model_fields["kind"].default for kind in get_args(ScorerKind)
)


def _parse_scorer(value: Any) -> Any:
    """Parse the short forms of a scorer: a kind, a package's entry point, or `module:attribute`.

    An entry point is stored as the `module:attribute` that it stands for.
    """
    if isinstance(value, dict) and value.get("kind") in find_entry_points(SCORER_GROUP):
        return {**_parse_scorer(value["kind"]), **value, "kind": "custom"}
    if not isinstance(value, str):
        return value
    if ":" in value:
        return {"kind": "custom", "function": value}
    if value in SCORER_KINDS:
        return {"kind": value}
    registered = find_entry_points(SCORER_GROUP)
    if value in registered:
        return {"kind": "custom", "name": value, "function": registered[value]}
    raise ValueError(
        f"there is no scorer {value!r}: there are {', '.join((*SCORER_KINDS, *registered))}; name "
        "one of your own as module:attribute"
    )


AnyScorer: TypeAlias = Annotated[
    Annotated[ScorerKind, Field(discriminator="kind")], BeforeValidator(_parse_scorer)
]
