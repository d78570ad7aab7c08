// A tool call and its result in full; loaded after the page, as calls are folded at first.

import { html, nothing } from "../shell/html.js";
import { joinText, listImages } from "../log/entry.js";
import { diffLines } from "../text/diff.js";
import { findLanguage } from "../text/highlight.js";
import { codeBlock, foldable, imageBlocks, markdownBlock, plainBlock } from "./blocks.js";
import { argumentsText } from "./call.js";
import { diffBlock, jsonOr, terminalBlock } from "./result_blocks.js";

export { terminalBlock };

const PRINTED = new Set(["TerminalObservation", "IPythonRunCellObservation"]);
const TASK_MARKS = { todo: "☐", in_progress: "▶", done: "☑" };

/** Show the call and its result in full. */
export function callBody(row, context) {
  const { event } = row.entry;
  return html`${row.kind === "call" ? argumentsBlock(row, context) : nothing}
  ${row.answer ? resultBlock(row, context) : nothing}
  ${event.security_risk && event.security_risk !== "UNKNOWN"
    ? html`<p class="quiet">Risk: ${event.security_risk.toLowerCase()}</p>`
    : nothing}`;
}

function argumentsBlock(row, { folds }) {
  const { event } = row.entry;
  const { action } = event;
  const key = `${row.seq} call`;
  switch (action?.kind) {
    case "TerminalAction":
      return codeBlock(action.command, "bash");
    case "IPythonRunCellAction":
      return codeBlock(action.code, "python");
    case "FileEditorAction":
      return editBlock(row, folds);
    case "ThinkAction":
      return markdownBlock(action.thought, key);
    case "TaskTrackerAction":
      return taskBlock(action.task_list ?? []);
    default:
      return foldable(argumentsText(event), key, folds, (text) => jsonOr(text, plainBlock));
  }
}

function editBlock(row, folds) {
  const { action } = row.entry.event;
  const path = html`<p class="path"><code>${action.path}</code></p>`;
  if (action.command === "str_replace") {
    return html`${path}${diffBlock(diffLines(action.old_str ?? "", action.new_str ?? ""))}`;
  }
  if (action.command === "insert") {
    const lines = diffLines("", action.new_str ?? "");
    return html`${path}<p class="quiet">After line ${action.insert_line}:</p>${diffBlock(lines)}`;
  }
  if (action.command === "create") {
    const language = findLanguage(action.path.split(".").at(-1));
    return html`${path}${foldable(action.file_text ?? "", `${row.seq} call`, folds, (text) => codeBlock(text, language))}`;
  }
  return path;
}

function taskBlock(tasks) {
  return html`<ul class="tasks">
    ${tasks.map(({ title, notes, status }) => html`<li>${TASK_MARKS[status] ?? "☐"} ${title} ${notes ? html`<span class="quiet">${notes}</span>` : nothing}</li>`)}
  </ul>`;
}

function resultBlock(row, { folds, api }) {
  const answer = row.answer.event;
  const key = `${row.seq} result`;
  if (answer.kind === "AgentErrorEvent") return html`<p class="failure">${answer.error}</p>`;
  if (answer.kind === "UserRejectObservation") {
    return html`<p class="failure">Rejected${answer.rejection_reason ? `: ${answer.rejection_reason}` : "."}</p>`;
  }
  const { observation } = answer;
  const text = joinText(observation.content);
  const show = PRINTED.has(observation.kind) ? terminalBlock : (part) => jsonOr(part, plainBlock);
  const images = imageBlocks(listImages(observation.content), api);
  const silent = observation.kind === "ThinkObservation" || observation.kind === "TaskTrackerObservation";
  if (silent && !observation.is_error) return nothing;
  const body = text ? foldable(text, key, folds, show) : html`<p class="quiet">No output.</p>`;
  const full = observation.full_output_save_dir;
  return html`<div class="result" aria-label="Result" role="group">${images.length && !text ? nothing : body}${images}
    ${isBlob(full) ? html`<p><a href=${api.blobPath(full)} target="_blank">All of the output</a></p>` : nothing}
  </div>`;
}

function isBlob(key) {
  return typeof key === "string" && /^blobs\/[0-9a-f]{64}$/.test(key);
}
