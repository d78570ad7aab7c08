// What an agent asks of a person: the approval of calls, or the answer to a question.

import { html, nothing } from "../shell/html.js";
import { formatMoment } from "../log/status.js";
import { headline } from "./call.js";

/**
 * Show what is asked, with the buttons and fields to answer it.
 *
 * `actions` has `respond(accept, calls, reason)` and `answerQuestion(call, fields)`.
 */
export function askingBanner(status, rowIndex, actions, canWrite, busy) {
  const { wait } = status.detail ?? {};
  if (status.status === "waiting_for_answer") return wait ? questionBanner(wait, actions, canWrite, busy) : nothing;
  return approvalBanner(status.pending.filter((call) => call.asks), rowIndex, actions, canWrite, busy);
}

function approvalBanner(calls, rowIndex, actions, canWrite, busy) {
  const ids = calls.map((call) => call.tool_call_id);
  return html`<section class="waiting asks" aria-label="Waits for">
    <p><strong>${calls.length === 1 ? "The agent wants to run this:" : `The agent wants to run these ${calls.length} calls:`}</strong></p>
    <ul>
      ${calls.map((call) => html`<li>${askingCall(call, rowIndex)}</li>`)}
    </ul>
    ${canWrite
      ? html`<form class="buttons" @submit=${(event) => reject(event, ids, actions)}>
          <button type="button" class="primary" ?disabled=${busy} @click=${() => actions.respond(true, ids)}>
            ${calls.length === 1 ? "Approve" : "Approve all"}
          </button>
          <input name="reason" aria-label="Reason for the rejection" placeholder="Reason, which the agent reads" autocomplete="off" />
          <button type="submit" class="danger" ?disabled=${busy}>${calls.length === 1 ? "Reject" : "Reject all"}</button>
        </form>`
      : nothing}
  </section>`;
}

function askingCall(call, rowIndex) {
  const event = rowIndex.get(call.seq)?.entry.event;
  const risk = call.risk && call.risk !== "UNKNOWN" ? html`<span class=${`risk risk-${call.risk}`}>${call.risk.toLowerCase()} risk</span>` : nothing;
  const text = event?.action?.command && event.action.kind === "TerminalAction" ? event.action.command : event ? headline(event) : "";
  return html`<a href=${`#seq-${call.seq}`}><b>${call.tool_name}</b></a> ${risk} <pre tabindex="0">${text}</pre>`;
}

function reject(event, ids, actions) {
  event.preventDefault();
  actions.respond(false, ids, event.target.elements.reason.value);
}

/** Show a question, with a button for each choice and a field for other words. */
function questionBanner(wait, actions, canWrite, busy) {
  const choose = (choice) => actions.answerQuestion(wait.call, { choice });
  return html`<section class="waiting asks" aria-label="Waits for">
    <p><strong>The agent asks:</strong> <span class="question">${wait.question}</span></p>
    ${wait.until ? html`<p class="quiet">Without an answer it goes on at ${formatMoment(wait.until)}.</p>` : nothing}
    ${canWrite
      ? html`<form class="buttons" @submit=${(event) => answerInWords(event, wait, actions)}>
          ${(wait.choices ?? []).map((choice) => html`<button type="button" ?disabled=${busy} @click=${() => choose(choice)}>${choice}</button>`)}
          <input name="answer" required aria-label="Answer in your own words" placeholder="Answer in your own words" autocomplete="off" />
          <button type="submit" class="primary" ?disabled=${busy}>Answer</button>
        </form>`
      : nothing}
  </section>`;
}

function answerInWords(event, wait, actions) {
  event.preventDefault();
  const text = event.target.elements.answer.value.trim();
  if (text) actions.answerQuestion(wait.call, { text });
}
