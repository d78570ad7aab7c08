"""All that is wrong on purpose: the laws of the trials must find each of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reliability.simulation.trials.broken import discussions, lists, memories, secrets, values


@dataclass(frozen=True)
class Mistake:
    """A part that is wrong, in a trial of its kind."""

    kind: str
    part: Any

    def __str__(self) -> str:
        return f"{self.kind}-{self.part.__name__}"


BROKEN: Sequence[Mistake] = tuple(
    Mistake(kind, part)
    for kind, parts in {
        "discussion": (
            discussions.SearchesNothing,
            discussions.ForgetsGrants,
            discussions.OverwritesEvents,
            discussions.AcknowledgesUnknownWrites,
            discussions.ChainsToNothing,
            discussions.PrunesTwice,
            discussions.ReadsEventsFirst,
            discussions.SavesWhatWasPruned,
        ),
        "state": (
            values.OverwritesUnseenValues,
            values.ForgetsItsWrites,
            values.ForgetsRefusals,
            values.RecordsItsWish,
            values.KeepsDeletedValues,
        ),
        "memory": (
            memories.MarksAfterwards,
            memories.KeepsLateTexts,
            memories.ReadsOnce,
            memories.SettlesUnderRebuilds,
            memories.SettlesUnwrittenVersions,
            memories.MissesReplacedMemories,
            memories.ReplacesAnyTable,
            memories.DeletesNewerRows,
        ),
        "lists": (
            lists.TrustsTheIndex,
            lists.ShowsWhatRestsAtWork,
            lists.ListsTheIndexAlone,
            lists.RemembersWhatWasThere,
            lists.PurgesWhatIsListed,
        ),
        "secrets": (
            secrets.OverwritesVersions,
            secrets.TakesTakenForDone,
            secrets.UndoesPuts,
            secrets.DeletesFirst,
        ),
    }.items()
    for part in parts
)
