// Folds entries of the log into rows: a call and its result are one.

import { joinText, listImages, reasoningOf } from "./entry.js";
import { describeWait } from "./status.js";

const ANSWER_KINDS = new Set(["ObservationEvent", "AgentErrorEvent", "UserRejectObservation"]);

/** The categories by which rows are filtered. */
export const CATEGORIES = [
  ["messages", "Messages"],
  ["calls", "Tool calls"],
  ["errors", "Errors"],
  ["notes", "Notes"],
  ["system", "System"],
];

/**
 * Fold entries in the order of their slots into rows.
 *
 * A row is `{seq, kind, category, entry, …}` with the seq of its first entry. `known` maps seqs
 * to the rows of the fold before: a row of the same entries stays the same object.
 */
export function foldEntries(entries, known = new Map()) {
  const calls = new Map(); // by the id of the action
  const rows = [];
  let response = null;
  for (const entry of entries) {
    const { event } = entry;
    if (event.kind === "ActionEvent") {
      const row = callRow(entry, response === event.llm_response_id);
      calls.set(event.id, row);
      rows.push(row);
      response = event.llm_response_id;
    } else if (ANSWER_KINDS.has(event.kind)) {
      const call = calls.get(event.action_id) ?? findUnreadable(rows, event);
      if (call && !call.answer) call.answer = entry;
      else rows.push({ seq: entry.seq, kind: "result", category: "calls", entry, answer: entry });
    } else {
      rows.push(eventRow(entry));
      if (event.kind === "MessageEvent") response = null;
    }
  }
  return rows.map((row) => reuse(row, known.get(row.seq)));
}

/** Index rows by their seqs, for the fold after. */
export function indexRows(rows) {
  return new Map(rows.map((row) => [row.seq, row]));
}

function reuse(row, known) {
  const same = known && known.entry === row.entry && known.answer === row.answer && known.continues === row.continues;
  return same ? known : finish(row);
}

/** Complete a row by what follows from its answer. */
function finish(row) {
  if (row.kind !== "call" && row.kind !== "result") return row;
  row.failed = isFailure(row.answer?.event);
  if (row.failed) row.category = "errors";
  if (row.kind === "call" && row.entry.event.action?.kind === "FinishAction") {
    row.kind = "message";
    row.category = "messages";
    row.author = "agent";
    row.text = row.entry.event.action.message;
    row.images = [];
  }
  return row;
}

function callRow(entry, continues) {
  const { event } = entry;
  return {
    seq: entry.seq,
    kind: "call",
    category: "calls",
    entry,
    answer: null,
    continues, // whether the same response has calls before it
    thought: joinText(event.thought),
    reasoning: reasoningOf(event),
  };
}

/** Find the call that an error without an action is about: its arguments could not be read. */
function findUnreadable(rows, event) {
  if (event.kind !== "AgentErrorEvent" || event.action_id) return undefined;
  return rows.findLast((row) => row.kind === "call" && row.entry.event.tool_call_id === event.tool_call_id);
}

function isFailure(event) {
  if (!event) return false;
  return event.kind !== "ObservationEvent" || event.observation.is_error === true;
}

function eventRow(entry) {
  const { event, seq } = entry;
  switch (event.kind) {
    case "MessageEvent":
      return messageRow(entry);
    case "SystemPromptEvent":
      return { seq, kind: "prompt", category: "system", entry };
    case "ConversationErrorEvent":
      return { seq, kind: "note", category: "errors", entry, failed: true };
    case "ConversationStateUpdateEvent":
    case "SecurityAnalysisEvent":
    case "RecallEvent":
      return { seq, kind: "note", category: "system", entry };
    default:
      return { seq, kind: "note", category: "notes", entry };
  }
}

function messageRow(entry) {
  const { event, seq } = entry;
  const content = event.llm_message.content ?? [];
  const author = event.source === "environment" ? "system" : event.source;
  return {
    seq,
    kind: "message",
    category: author === "system" ? "notes" : "messages",
    entry,
    author,
    text: joinText(content),
    images: listImages(content),
    additions: joinText(event.extended_content),
    reasoning: reasoningOf(event.llm_message),
  };
}

/** Tell in a sentence what an event says that is no message, call or result. */
export function describeNote(event) {
  switch (event.kind) {
    case "PauseEvent":
      return `Paused by ${event.actor ?? "a person"}.`;
    case "InterruptEvent":
      return event.reason ? "Suspended: too many conversations were at work." : `Interrupted by ${event.actor ?? "a person"}.`;
    case "WaitEvent":
      return `${describeWait(event)}.`;
    case "QuestionEvent":
      return `Asks: ${event.question}${event.choices?.length ? ` (${event.choices.join(" / ")})` : ""}`;
    case "SignalEvent":
      return `Signal ${event.name}: ${JSON.stringify(event.data ?? null)}`;
    case "ConversationErrorEvent":
      return `${event.code}: ${event.detail}`;
    case "StuckEvent":
      return `The agent went in circles: ${event.pattern}, ${event.count} times, events ${event.first_seq} to ${event.last_seq}.`;
    case "CondensationRequest":
      return "The agent's view was to be made smaller.";
    case "Condensation":
      return `${event.forgotten_event_ids?.length ?? 0} events left the agent's view.`;
    case "SecurityAnalysisEvent":
      return `Risk ${Object.values(event.risks).join(", ")}, by ${event.analyzer}.`;
    case "RecallEvent":
      return `Recalled ${(event.skills ?? []).join(", ") || "facts about the workspace"}.`;
    case "ConversationStateUpdateEvent":
      return describeState(event);
    default:
      return event.kind || "An event of a newer version.";
  }
}

function describeState({ key, value, actor }) {
  const by = actor ? ` (by ${actor})` : "";
  if (typeof value === "string" || typeof value === "number") return `${key}: ${value}${by}`;
  return `The ${key} was recorded${by && ` by ${actor}`}.`;
}
