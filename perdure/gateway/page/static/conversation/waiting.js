// What a conversation waits for, with the buttons for it.

import { html, nothing } from "../shell/html.js";
import { waitsFor } from "../log/status.js";
import { headline } from "./call.js";

/**
 * Show what the conversation waits for; nothing while it works.
 *
 * `actions` has `respond(accept, calls, reason)`, `resume()`, `reopen()` and `answer()`;
 * `canWrite` tells whether the user may steer it, `canFork` whether he may fork it.
 */
export function waitingBanner({ status, rowIndex, actions, canWrite, canFork, busy }) {
  if (status.status === "waiting_for_confirmation") {
    return approvalBanner(status.pending.filter((call) => call.asks), rowIndex, actions, canWrite, busy);
  }
  const sentence = waitsFor(status);
  const kind = status.status === "error" || status.trouble ? "bad" : "calm";
  switch (status.status) {
    case "paused":
    case "error":
    case "stuck":
      return banner(kind, sentence, canWrite ? button("Resume", actions.resume, busy, true) : nothing);
    case "closed":
      return banner("calm", "Closed for good. A fork of it goes on from any of its events.", canFork ? button("Fork", actions.fork, busy) : nothing);
    case "idle":
    case "finished":
      if (status.waiting) return nothing;
      return banner("calm", status.reason ?? "Waits for your message.", canWrite ? button("Answer", actions.answer, busy) : nothing);
    default:
      return status.trouble ? banner("bad", status.trouble, canWrite ? button("Reopen", actions.reopen, busy) : nothing) : nothing;
  }
}

function banner(kind, sentence, buttons) {
  return html`<section class=${`waiting ${kind}`} aria-label="Waits for">
    <p>${sentence}</p>
    <div class="buttons">${buttons}</div>
  </section>`;
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

function button(label, run, busy, primary = false) {
  return html`<button type="button" class=${primary ? "primary" : ""} ?disabled=${busy} @click=${run}>${label}</button>`;
}
