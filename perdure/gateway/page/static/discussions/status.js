// The status of a discussion in words.

import { html } from "../shell/html.js";

const WORDS = { opening: "Opening", running: "Running", paused: "Paused", finished: "Finished", closed: "Closed", failed: "Failed" };
const CLASSES = { opening: "running", failed: "error" };

/** Tell whether nothing follows any more. */
export function isOver(status) {
  return ["finished", "closed", "failed"].includes(status.status);
}

export function statusPill({ status }) {
  return html`<span class=${`pill status-${CLASSES[status] ?? status}`}>${WORDS[status] ?? status}</span>`;
}

/** Write counts of votes: `tea 2, coffee 1`. */
export function formatCounts(counts) {
  return Object.entries(counts)
    .map(([option, count]) => `${option} ${count}`)
    .join(", ");
}

/** Return a line about where the discussion is, and what came of its votes. */
export function progressLine({ status, phase, round, tally, reason }) {
  const place = phase ? `${phase}${round && status === "running" ? `, round ${round}` : ""}` : "";
  const vote = tally ? `vote: ${formatCounts(tally.counts)}${tally.winner ? `, ${tally.winner} wins` : ""}` : "";
  return [place, vote, reason ?? ""].filter(Boolean).join(" · ");
}
