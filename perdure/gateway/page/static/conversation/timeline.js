// The timeline: how long each step of the loaded events took, turn by turn.

import { html, nothing, svg } from "../shell/html.js";
import { showDialog } from "../shell/dialog.js";
import { groupTurns, listSteps, sumSteps } from "../log/steps.js";
import { formatDollars, formatSeconds, formatTokens } from "../log/usage.js";

const MAX_STEPS = 300; // of the newest ones that are shown

/** Show the timeline of a model's rows; resolves to the slot that was chosen, if one was. */
export function showTimeline(model) {
  let busy = false;
  return showDialog(
    "Timeline",
    ({ close, draw }) => {
      const loadMore = async () => {
        busy = true;
        draw();
        for (let page = 0; page < 5 && (await model.loadOlder()); page += 1);
        busy = false;
        draw();
      };
      const steps = listSteps(model.rows).slice(-MAX_STEPS);
      if (!steps.length) return html`<p class="quiet">No step has ended yet.</p>`;
      return html`<p class="quiet">Events ${steps[0].seq} to ${steps.at(-1).seq}.
          ${model.span.from > 0 ? html`<button type="button" ?disabled=${busy} @click=${loadMore}>${busy ? "Loading …" : "Load earlier ones"}</button>` : nothing}
        </p>
        ${groupTurns(steps).map((turn) => turnTable(turn, close))}`;
    },
    { wide: true },
  );
}

function turnTable(turn, close) {
  const sum = sumSteps(turn);
  const total = Math.max(1, sum.end - sum.start);
  const facts = [formatSeconds(total / 1000), `${formatTokens(sum.tokens)} tokens`, formatDollars(sum.cost)];
  return html`<table class="timeline">
    <caption>Turn at event ${turn[0].seq}: ${facts.join(" · ")}</caption>
    <thead class="visually-hidden">
      <tr><th scope="col">Event</th><th scope="col">Step</th><th scope="col">Time</th><th scope="col">When</th></tr>
    </thead>
    <tbody>
      ${turn.map(
        (step) => html`<tr>
          <td><button type="button" class="plain link" @click=${() => close(step.seq)}>#${step.seq}</button></td>
          <td>${step.name}</td>
          <td class="number">${step.kind === "message" ? "" : formatSeconds((step.end - step.start) / 1000)}</td>
          <td class="bar">${bar(step, sum.start, total)}</td>
        </tr>`,
      )}
    </tbody>
  </table>`;
}

function bar(step, start, total) {
  const from = ((step.start - start) / total) * 1000;
  const width = Math.max(4, ((step.end - step.start) / total) * 1000);
  return html`<svg viewBox="0 0 1000 12" preserveAspectRatio="none" aria-hidden="true">
    ${svg`<rect class=${`step-${step.failed ? "failed" : step.kind}`} x=${Math.min(from, 996)} y="1" width=${width} height="10" rx="2"></rect>`}
  </svg>`;
}
