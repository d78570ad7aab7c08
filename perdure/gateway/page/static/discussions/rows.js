// The rows of a discussion on the page.

import { html, guard, nothing, svg } from "../shell/html.js";
import { formatMoment } from "../log/usage.js";
import { markdownBlock } from "../conversation/blocks.js";
import { formatCounts } from "./status.js";

/** Show a row; `context` has `{colours, opened, selected, setOpened}`. */
export function rowTemplate(row, context) {
  const opened = context.opened.has(row.seq);
  const selected = context.selected === row.seq;
  const grants = row.intents?.map((intent) => intent.granted).join() ?? "";
  const colour = context.colours.get(row.speaker) ?? 0;
  return html`${guard([row.seq, row.kind, row.intents?.length, grants, opened, selected, colour], () => article(row, context, { opened, selected }))}`;
}

function article(row, context, { opened, selected }) {
  const colour = context.colours.get(row.speaker);
  return html`<article
    class=${`said ${row.kind} ${colour ? `speaker-${colour}` : ""}`}
    id=${`seq-${row.seq}`}
    data-seq=${row.seq}
    tabindex=${selected ? 0 : -1}
    aria-label=${`${nameRow(row)}, event ${row.seq}`}
    aria-current=${selected ? "true" : nothing}
  >
    ${body(row, context, opened)}
  </article>`;
}

function nameRow(row) {
  const names = { intents: "Intents", phase: "Phase", note: "Note", tally: "Tally", summary: "Summary" };
  return names[row.kind] ?? (row.kind === "vote" ? `Vote of ${row.speaker}` : row.speaker);
}

function body(row, context, opened) {
  switch (row.kind) {
    case "speech":
      return html`${head(row, row.speaker)}<div class="content">${markdownBlock(row.text, `discussion ${row.event.eventId}`)}</div>`;
    case "summary":
      return html`${head(row, "Summary")}<div class="content">${markdownBlock(row.text, `discussion ${row.event.eventId}`)}</div>`;
    case "intents":
      return intents(row, context, opened);
    case "vote":
      return html`<p><b class="author">${row.speaker}</b> votes <b>${row.ballot}</b>${row.reason ? html`: <span class="quiet">${row.reason}</span>` : nothing}</p>`;
    case "tally":
      return tally(row);
    case "phase":
      return html`<h2>${row.to === "end" ? "The end" : row.to}</h2>`;
    default:
      return html`<p class="quiet">${row.text}</p>`;
  }
}

function head(row, name) {
  return html`<header><b class="author">${name}</b> <span class="meta">${formatMoment(row.event.timestamp)}</span></header>`;
}

/** Show who wants to speak on one line, which unfolds to what each wants to say. */
function intents(row, { colours, setOpened }, opened) {
  const names = row.intents.map(({ speaker }) => speaker).join(", ");
  const granted = row.intents.filter((intent) => intent.granted).map(({ speaker }) => speaker);
  return html`<details .open=${opened} @toggle=${(event) => setOpened(row.seq, event.target.open)}>
    <summary>${names} ${row.intents.length > 1 ? "want" : "wants"} to speak${granted.length ? ` · granted: ${granted.join(", ")}` : ""}</summary>
    <ul>
      ${row.intents.map(({ speaker, urgency, line }) => html`<li><b class=${`author speaker-${colours.get(speaker) ?? 0}`}>${speaker}</b>${urgency === null ? "" : `, urgency ${urgency}`}: ${line}</li>`)}
    </ul>
  </details>`;
}

/** Show what came of a vote as bars, with the counts as their text. */
function tally({ counts, winner }) {
  const most = Math.max(1, ...Object.values(counts));
  return html`<p><b>Tally:</b> ${formatCounts(counts)} · ${winner === null ? "no majority" : html`<b>${winner}</b> wins`}</p>
    <div class="bars" aria-hidden="true">
      ${Object.entries(counts).map(
        ([option, count]) =>
          html`<span>${option}</span><svg viewBox="0 0 100 8" preserveAspectRatio="none">${svg`<rect class=${option === winner ? "won" : "lost"} x="0" y="0" width=${(100 * count) / most} height="8"></rect>`}</svg>`,
      )}
    </div>`;
}
