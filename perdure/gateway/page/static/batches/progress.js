// The progress of a batch in numbers and words.

import { html, nothing, svg } from "../shell/html.js";
import { formatCost, formatNumber, formatSeconds } from "../log/usage.js";

const PARTS = [
  ["scored", "scored"],
  ["limited", "limited"],
  ["failed", "failed"],
  ["running", "running"],
  ["missing", "missing"],
];
const STATUS_WORDS = { running: "Running", paused: "Paused", finished: "Finished", stopped: "Stopped" };

/** Count the epochs of samples by what became of them: those of `expected`. */
export function countParts(progress) {
  const known = progress.scored + progress.limited + progress.failed + progress.running;
  return { ...progress, missing: Math.max(0, progress.expected - known) };
}

export function statusPill(progress) {
  const kind = progress.blocked ? "error" : progress.status;
  return html`<span class=${`pill status-${kind}`}>${STATUS_WORDS[progress.status] ?? progress.status}</span>`;
}

/** Show how much is done as a bar, with the counts as its text. */
export function progressBar(progress) {
  const counts = countParts(progress);
  const total = Math.max(1, progress.expected);
  const words = PARTS.filter(([part]) => counts[part]).map(([part, word]) => `${formatNumber(counts[part])} ${word}`);
  let from = 0;
  const rects = PARTS.map(([part]) => {
    const width = (counts[part] / total) * 1000;
    const x = from;
    from += width;
    return { part, x, width };
  });
  return html`<div class="progress">
    <svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
      ${rects.map(({ part, x, width }) => svg`<rect class=${`part-${part}`} x=${x} y="0" width=${width} height="10"></rect>`)}
    </svg>
    <span class="quiet">${words.join(" · ") || "Nothing to run"}</span>
  </div>`;
}

/** Return the mean of running sums, and its standard error; null without any number. */
export function meanOf({ count, total, squares }) {
  if (!count) return null;
  const mean = total / count;
  if (count < 2) return { mean, error: null };
  const variance = Math.max(0, squares - (total * total) / count) / (count - 1);
  return { mean, error: Math.sqrt(variance / count) };
}

/** Write a mean with its standard error. */
export function formatMean(mean, error) {
  if (mean === null || mean === undefined) return "–";
  return error === null || error === undefined ? mean.toFixed(3) : `${mean.toFixed(3)} ± ${error.toFixed(3)}`;
}

/** Write the scores so far in a line. */
export function scoreLine(progress) {
  return Object.entries(progress.scores ?? {})
    .map(([name, sums]) => {
      const { mean = null, error = null } = meanOf(sums) ?? {};
      return `${name} ${formatMean(mean, error)}`;
    })
    .join(" · ");
}

/** Return the estimated seconds to the end; null while that cannot be told. */
export function secondsLeft(progress) {
  if (!progress.finished || progress.status !== "running") return null;
  const counts = countParts(progress);
  return ((counts.running + counts.missing) * progress.seconds) / progress.finished;
}

/** Show what a batch has used, and how long it will take. */
export function spending(progress) {
  const left = secondsLeft(progress);
  const limit = progress.cost ? ` of $${progress.cost}` : "";
  const facts = [
    ["Cost", `${formatCost(progress.spent)}${limit}`],
    ["At work", formatSeconds(progress.seconds)],
    ...(left === null ? [] : [["Left", `about ${formatSeconds(left)}`]]),
    ["At once", formatNumber(progress.concurrency)],
    ["Attempts", formatNumber(progress.attempts)],
    ["Tool calls", `${formatNumber(progress.tool_calls)}${progress.tool_errors ? `, ${formatNumber(progress.tool_errors)} failed` : ""}`],
  ];
  return html`<dl class="facts">
    ${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** Show why a batch does not go on. */
export function reasonLine({ progress, trouble }) {
  const reason = trouble ?? progress.reason ?? null;
  if (!reason) return nothing;
  return html`<p class=${progress.blocked || trouble ? "failure" : "quiet"}>${reason}</p>`;
}
