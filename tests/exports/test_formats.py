"""The contract of every format."""

from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings

from perdure.events.content import join_text
from perdure.events.entry import Entry, make_entry
from perdure.events.messages import MessageEvent
from perdure.exports.format import ExportMetadata, Format
from perdure.exports.formats import FORMATS
from tests.builders import CONVERSATION, ORIGIN, agent, entries, id_of, user
from tests.exports.checks import export_files, readable_text
from tests.exports.sample_log import ABOUT, PIXEL, SECRET, sample_entries
from tests.logs import condensed_logs

each = pytest.mark.parametrize("made", FORMATS, ids=lambda made: made.name)
each_transcript = pytest.mark.parametrize(
    "made",
    [made for made in FORMATS if made.name != "mcpbench-statistics"],
    ids=lambda made: made.name,
)
each_complete = pytest.mark.parametrize(
    "made",
    [made for made in FORMATS if not made.name.startswith("mcpbench")],
    ids=lambda made: made.name,
)
"""All but mcpbench's, which have neither images nor recalls nor rejections."""


def test_no_two_formats_have_one_name() -> None:
    assert len({made.name for made in FORMATS}) == len(FORMATS) > 0


@each
def test_the_same_log_makes_the_same_bytes(made: Format) -> None:
    assert export_files(made, ABOUT, sample_entries()) == export_files(
        made, ABOUT, sample_entries()
    )


@each
def test_a_log_without_events_is_exported(made: Format) -> None:
    readable_text(export_files(made, ExportMetadata(CONVERSATION), []))


@each_complete
def test_messages_and_results_are_exported_though_a_condensation_forgot_them(made: Format) -> None:
    text = readable_text(export_files(made, ABOUT, sample_entries()))
    for phrase in (
        "Look at this.",
        "Use hatch.",
        f"seen {SECRET}",
        "not on a Friday",
        "All <done> ❤",
    ):
        assert phrase in text, phrase


@each_complete
def test_an_image_is_embedded_or_named(made: Format) -> None:
    text = readable_text(export_files(made, ABOUT, sample_entries()))
    assert PIXEL in text or "[image: image/png]" in text


@each_transcript
def test_a_log_with_missing_events_is_exported(made: Format) -> None:
    whole = sample_entries()
    for gone in range(len(whole)):
        text = readable_text(
            export_files(made, ABOUT, [item for item in whole if item.seq != gone])
        )
        assert gone == 28 or "All <done> ❤" in text


@each_transcript
@settings(max_examples=8, suppress_health_check=list(HealthCheck), deadline=None)
@given(log=condensed_logs)
def test_every_message_of_any_log_is_exported(made: Format, log: list[Entry]) -> None:
    spoken = [item.event for item in log if isinstance(item.event, MessageEvent)]
    if made.name == "openai":  # nothing is learned from what nobody answered
        while spoken and spoken[-1].source != "agent":
            spoken.pop()
    if made.name == "mcpbench":
        spoken = [item for item in spoken if item.source != "environment"]
    text = readable_text(export_files(made, ABOUT, log))
    for item in spoken:
        assert join_text(item.llm_message.content) in text


@each_transcript
def test_a_long_log_is_not_in_memory(made: Format) -> None:
    """An entry is written before the ones after it have been read."""
    read = 0

    def without_end() -> Iterator[Entry]:
        nonlocal read
        yield from entries([user("Count."), agent("One.", "r-0")])
        while True:
            read += 1
            event = agent(f"{read}", f"r-{read}").model_copy(update={"id": id_of(read + 1)})
            yield make_entry(read + 1, event, ORIGIN)

    assert len(list(islice(made.parts(ABOUT, without_end()), 50))) == 50
    assert read <= 50
