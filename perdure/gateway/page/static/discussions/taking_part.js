// The fields in which a person speaks and votes.

import { html, nothing } from "../shell/html.js";
import { formatCounts } from "./status.js";

/** Show the fields; a vote only where the phase has one. */
export function takingPart(view) {
  const { phase, counts } = view.model;
  const votes = phase?.end === "vote";
  return html`<section class="taking-part" aria-label="Take part">
    <form class="saying" @submit=${(event) => (event.preventDefault(), view.say())}>
      <label class="visually-hidden" for="say">What you say</label>
      <textarea id="say" rows="2" placeholder=${`Speak as ${view.page.me.user_id} (Enter sends)`} @keydown=${(event) => sendByEnter(event, () => view.say())}></textarea>
      <button type="submit" class="primary" ?disabled=${view.busy.has("say")}>Say</button>
    </form>
    ${votes ? voteForm(view, phase, counts) : nothing}
  </section>`;
}

function voteForm(view, phase, counts) {
  const sofar = formatCounts(counts);
  return html`<form class="voting" @submit=${(event) => (event.preventDefault(), view.vote())}>
    <label for="ballot">${phase.question || "Vote"}</label>
    <select id="ballot">${phase.options.map((option) => html`<option value=${option}>${option}</option>`)}</select>
    <label class="visually-hidden" for="reason">Why</label>
    <input id="reason" placeholder="Why (optional)" maxlength="1000" autocomplete="off" />
    <button type="submit" ?disabled=${view.busy.has("vote")}>Vote</button>
    <span class="quiet">${sofar ? `So far: ${sofar}` : "No ballot yet"}</span>
  </form>`;
}

function sendByEnter(event, send) {
  if (event.key !== "Enter" || event.isComposing || event.shiftKey) return;
  event.preventDefault();
  send();
}
