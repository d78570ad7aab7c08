"""How the page makes rows of entries, and which of them it holds and mounts."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.page.modules import Modules

pytestmark = pytest.mark.page

GOLDEN = Path(__file__).parents[2] / "golden" / "events"

FOLD = """async (fold, items) => {
  const { readEntry } = await import("/page/DIGEST/log/entry.js");
  return fold.foldEntries(items.map((item) => readEntry(item))).map((row) => ({
    seq: row.seq, kind: row.kind, category: row.category, author: row.author, text: row.text,
    answer: row.answer?.seq, failed: row.failed ?? false, continues: row.continues ?? false,
    note: row.kind === "note" ? fold.describeNote(row.entry.event) : null,
  }));
}"""


def golden(name: str) -> dict[str, Any]:
    """Return an event as a log has it."""
    parsed: dict[str, Any] = json.loads((GOLDEN / f"{name}.v1.json").read_text())
    return parsed


async def fold(modules: Modules, *items: dict[str, Any]) -> list[dict[str, Any]]:
    """Fold items, whose slots are their places, into rows."""
    placed = [{"seq": seq, **item} for seq, item in enumerate(items)]
    code = FOLD.replace("DIGEST", modules.digest)
    rows: list[dict[str, Any]] = await modules.call("log/fold.js", code, placed)
    return rows


async def test_a_call_and_its_result_are_one_row(modules: Modules) -> None:
    rows = await fold(modules, golden("ActionEvent"), golden("ObservationEvent"))
    assert [(row["seq"], row["kind"], row["answer"]) for row in rows] == [(0, "call", 1)]
    assert rows[0]["failed"]


async def test_a_result_without_its_call_is_a_row_of_its_own(modules: Modules) -> None:
    """Its call may be on a page that is not loaded, or have had a result before."""
    result = golden("ObservationEvent")
    rows = await fold(modules, result, golden("ActionEvent"), result, result)
    assert [(row["seq"], row["kind"]) for row in rows] == [
        (0, "result"),
        (1, "call"),
        (3, "result"),
    ]


async def test_an_error_of_an_unreadable_call_finds_it_by_the_id_of_the_call(
    modules: Modules,
) -> None:
    error = golden("AgentErrorEvent")
    del error["action_id"]
    rows = await fold(modules, golden("ActionEvent-unreadable"), error)
    assert [(row["seq"], row["answer"], row["category"]) for row in rows] == [(0, 1, "errors")]


async def test_a_rejection_is_the_result_of_its_call(modules: Modules) -> None:
    rows = await fold(modules, golden("ActionEvent-unreadable"), golden("UserRejectObservation"))
    assert [(row["answer"], row["failed"]) for row in rows] == [(1, True)]


async def test_the_report_of_finish_is_a_message_of_the_agent(modules: Modules) -> None:
    rows = await fold(modules, golden("ActionEvent-FinishAction"))
    assert [(row["kind"], row["author"], row["text"]) for row in rows] == [
        ("message", "agent", "Done: the lock file is new.")
    ]


async def test_calls_of_one_response_continue_each_other(modules: Modules) -> None:
    call = golden("ActionEvent")
    other = {**call, "id": "another", "llm_response_id": "another"}
    rows = await fold(modules, call, {**call, "id": "second"}, other)
    assert [row["continues"] for row in rows] == [False, True, False]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
async def test_every_kind_of_event_is_shown(modules: Modules, path: Path) -> None:
    rows = await fold(modules, json.loads(path.read_text()))
    assert len(rows) == 1
    assert rows[0]["kind"] != "note" or rows[0]["note"]


async def test_an_event_of_a_newer_version_is_shown_by_its_kind(modules: Modules) -> None:
    rows = await fold(modules, {"kind": "HologramEvent", "id": "x", "timestamp": "", "origin": {}})
    assert [(row["kind"], row["note"]) for row in rows] == [("note", "HologramEvent")]


async def test_rows_stay_the_same_objects_unless_their_entries_change(modules: Modules) -> None:
    code = """async (fold, items) => {
      const { readEntry } = await import("/page/DIGEST/log/entry.js");
      const entries = items.map((item, seq) => readEntry({ seq, ...item }));
      const before = fold.foldEntries(entries.slice(0, 2));
      const after = fold.foldEntries(entries, fold.indexRows(before));
      return [before[0] === after[0], before[1] === after[1]];
    }""".replace("DIGEST", modules.digest)
    items = [golden("MessageEvent"), golden("ActionEvent"), golden("ObservationEvent")]
    assert await modules.call("log/fold.js", code, items) == [True, False]


async def test_the_text_of_a_step_grows_in_order_and_a_higher_attempt_replaces_it(
    modules: Modules,
) -> None:
    code = """({ Drafts }, frames) => {
      const drafts = new Drafts();
      return frames.map((frame) => { drafts.apply(frame); return drafts.list()[0].text; });
    }"""

    def delta(attempt: int, offset: int, text: str) -> dict[str, Any]:
        return {
            "item_id": "7",
            "step": "llm.chat",
            "attempt": attempt,
            "offset": offset,
            "text": text,
        }

    frames = [
        delta(1, 0, "Grüße 🙈"),
        delta(1, 7, " an"),
        delta(1, 7, " an alle"),
        delta(2, 0, "Neu"),
        delta(1, 10, "late"),
        delta(2, 3, "!"),
    ]
    shown = ["Grüße 🙈", "Grüße 🙈 an", "Grüße 🙈 an alle", "Neu", "Neu", "Neu!"]
    assert await modules.call("log/drafts.js", code, frames) == shown


async def test_a_span_has_no_gap_and_no_entry_twice(modules: Modules) -> None:
    code = """({ Span }) => {
      const entries = (from, to) =>
        Array.from({ length: to - from }, (_, at) => ({ seq: from + at }));
      const span = new Span(entries(100, 200), 100, 200);
      const taken = [200, 202, 200].map((seq) => span.append({ seq }));
      span.extendUp(entries(0, 110), 0);
      span.extendDown(entries(190, 300), 300);
      const seqs = span.entries.map((entry) => entry.seq);
      return [taken, span.from, span.to, seqs.every((seq, at) => seq === at), seqs.length];
    }"""
    assert await modules.call("log/span.js", code) == [[True, False, False], 0, 300, True, 300]


async def test_a_span_lets_go_of_what_is_far_away(modules: Modules) -> None:
    code = """({ Span }) => {
      const entries = (from, to) =>
        Array.from({ length: to - from }, (_, at) => ({ seq: from + at }));
      const span = new Span(entries(5000, 8000), 5000, 8000);
      span.extendUp(entries(4900, 5000), 4900);
      const up = [span.from, span.to, span.entries.length];
      span.extendDown(entries(7900, 8000), 8000);
      return [up, [span.from, span.to, span.entries.length]];
    }"""
    assert await modules.call("log/span.js", code) == [[4900, 7900, 3000], [5000, 8000, 3000]]


async def test_at_most_300_rows_are_mounted_wherever_one_reads(modules: Modules) -> None:
    code = """({ RowWindow }) => {
      const rows = Array.from({ length: 3000 }, (_, seq) => ({ seq }));
      const mounted = new RowWindow();
      const ends = () => {
        const shown = mounted.select(rows);
        return [shown[0].seq, shown.at(-1).seq, shown.length];
      };
      const seen = [ends()];
      for (let times = 0; times < 12; times += 1) { mounted.extendUp(rows); seen.push(ends()); }
      for (let times = 0; times < 60; times += 1) mounted.extendDown(rows);
      seen.push(ends());
      mounted.around(rows, 1500);
      seen.push(ends());
      mounted.followEnd();
      seen.push(ends());
      return seen;
    }"""
    seen = await modules.call("log/window.js", code)
    assert all(length <= 300 for _, _, length in seen)
    assert seen[0] == [2970, 2999, 30]
    assert seen[1] == [2940, 2999, 60]
    assert seen[12] == [2610, 2909, 300]
    assert seen[13] == [2700, 2999, 300]
    assert seen[14] == [1470, 1530, 61]
    assert seen[15] == [2970, 2999, 30]


async def test_new_rows_are_mounted_while_the_end_is_followed(modules: Modules) -> None:
    code = """({ RowWindow }) => {
      const rows = Array.from({ length: 50 }, (_, seq) => ({ seq }));
      const mounted = new RowWindow();
      const following = mounted.select([...rows, { seq: 50 }]).at(-1).seq;
      mounted.hold(rows);
      return [following, mounted.select([...rows, { seq: 50 }]).at(-1).seq];
    }"""
    assert await modules.call("log/window.js", code) == [50, 49]


async def test_steps_have_the_time_of_the_model_and_of_the_tool(modules: Modules) -> None:
    code = """async ({ listSteps, groupTurns, sumSteps }, items) => {
      const { readEntry } = await import("/page/DIGEST/log/entry.js");
      const { foldEntries } = await import("/page/DIGEST/log/fold.js");
      const rows = foldEntries(items.map((item, seq) => readEntry({ seq, ...item })));
      const steps = listSteps(rows);
      const turns = groupTurns(steps);
      const lasted = steps.map((step) => [step.seq, step.kind, step.end - step.start]);
      return [lasted, turns.length, sumSteps(steps).tokens];
    }""".replace("DIGEST", modules.digest)
    items = [golden("MessageEvent"), golden("ActionEvent"), golden("ObservationEvent")]
    steps, turns, tokens = await modules.call("log/steps.js", code, items)
    assert steps == [[0, "message", 0], [1, "model", 1750], [1, "tool", 60030]]
    assert turns == 1
    assert tokens == 1594


async def test_server_sent_events_are_parsed_wherever_they_are_cut(modules: Modules) -> None:
    code = """({ EventParser }, text) => {
      const seen = [];
      for (let cut = 0; cut <= text.length; cut += 1) {
        const parser = new EventParser();
        const events = [...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))];
        seen.push(JSON.stringify(events));
      }
      return [...new Set(seen)];
    }"""
    text = (
        ': ping\n\nevent: durable\nid: 7\ndata: {"a":1}\n\ndata: b\r\ndata: c\r\n\r\nretry: 9\n\n'
    )
    seen = await modules.call("wire/event_stream.js", code, text)
    assert [json.loads(line) for line in seen] == [
        [
            {"event": "durable", "data": '{"a":1}', "id": "7"},
            {"event": "message", "data": "b\nc", "id": "7"},
        ]
    ]
