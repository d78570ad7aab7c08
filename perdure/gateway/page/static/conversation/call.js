// The line that says what a tool call did, and how it ended.

import { secondsBetween } from "../log/usage.js";

const MAX_HEADLINE_CHARS = 160;

/** Return the line that says what a call does. */
export function headline(event) {
  return shorten(describeAction(event).trim());
}

function describeAction(event) {
  const { action } = event;
  if (event.summary && action?.kind !== "TerminalAction") return event.summary;
  switch (action?.kind) {
    case "TerminalAction":
      return action.command;
    case "IPythonRunCellAction":
      return action.code;
    case "FileEditorAction":
      return `${action.command} ${action.path}`;
    case "ThinkAction":
      return action.thought;
    case "TaskTrackerAction":
      return `${action.task_list?.length ?? 0} tasks`;
    default:
      return argumentsText(event);
  }
}

/** Return the arguments as the model wrote them. */
export function argumentsText(event) {
  return event.tool_call?.arguments ?? JSON.stringify(event.action?.data ?? event.action ?? {});
}

function shorten(text) {
  const line = text.split("\n", 1)[0];
  const cut = line.length > MAX_HEADLINE_CHARS || line.length < text.length;
  return cut ? `${line.slice(0, MAX_HEADLINE_CHARS)} …` : line;
}

/** Return how a call has ended: `{mark, word, state}`; `pending` is its entry in the status. */
export function outcome(row, pending, statusName) {
  const answer = row.answer?.event;
  if (!answer) {
    if (pending?.asks) return { mark: "?", word: "Needs approval", state: "waiting" };
    if (pending && statusName === "waiting") return { mark: "◷", word: "Waiting", state: "waiting" };
    if (pending && statusName === "waiting_for_answer") return { mark: "?", word: "Asks you", state: "waiting" };
    if (pending && statusName === "running") return { mark: "…", word: "Running", state: "running" };
    if (pending) return { mark: "‖", word: "Not begun", state: "waiting" };
    return { mark: "·", word: "No result", state: "none" };
  }
  if (answer.kind === "UserRejectObservation") return { mark: "✕", word: "Rejected", state: "failed" };
  if (answer.kind === "AgentErrorEvent") return { mark: "✕", word: errorWord(answer), state: "failed" };
  const exit = answer.observation.exit_code;
  if (row.failed) return { mark: "✕", word: exit > 0 ? `Exit code ${exit}` : "Failed", state: "failed" };
  if (exit > 0) return { mark: "!", word: `Exit code ${exit}`, state: "exited" };
  return { mark: "✓", word: "Done", state: "done" };
}

function errorWord({ classification }) {
  const words = { outcome_unknown: "Outcome unknown", interrupted: "Interrupted", bad_arguments: "Bad arguments" };
  return words[classification] ?? "Error";
}

/** Return the seconds between a call and its result; null without one. */
export function callSeconds(row) {
  if (row.kind !== "call" || !row.answer) return null;
  return secondsBetween(row.entry.event.timestamp, row.answer.event.timestamp);
}
