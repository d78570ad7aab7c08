// What a conversation waits for, with the buttons for it.

import { html, nothing } from "../shell/html.js";
import { progressOf, waitsFor } from "../log/status.js";
import { ASKS } from "./parts.js";

/**
 * Show what the conversation waits for; nothing while it works.
 *
 * `actions` has `resume()`, `reopen()` and `answer()`, and what `askingBanner` needs; `canWrite`
 * tells whether the user may steer it, `canFork` whether he may fork it.
 */
export function waitingBanner({ status, rowIndex, actions, canWrite, canFork, busy, draw }) {
  if (status.status === "waiting_for_confirmation" || status.status === "waiting_for_answer") {
    return ASKS.now(draw)?.askingBanner(status, rowIndex, actions, canWrite, busy) ?? nothing;
  }
  const sentence = waitsFor(status);
  const kind = status.status === "error" || status.trouble ? "bad" : "calm";
  switch (status.status) {
    case "paused":
    case "error":
    case "stuck":
      return banner(kind, sentence, canWrite ? button("Resume", actions.resume, busy, true) : nothing);
    case "waiting":
      return banner("calm", `${sentence}. A message ends the wait.`, nothing);
    case "closed":
      return banner("calm", canWrite ? "Closed. A message opens it again." : "Closed. A fork of it goes on from any of its events.", canFork ? button("Fork", actions.fork, busy) : nothing);
    case "idle":
    case "finished":
      if (status.waiting) return nothing;
      return banner("calm", sentence || status.reason || "Waits for your message.", canWrite ? button("Answer", actions.answer, busy) : nothing);
    default:
      if (!status.trouble && progressOf(status)) return banner("calm", progressOf(status), nothing);
      return status.trouble ? banner("bad", status.trouble, canWrite ? button("Reopen", actions.reopen, busy) : nothing) : nothing;
  }
}

function banner(kind, sentence, buttons) {
  return html`<section class=${`waiting ${kind}`} aria-label="Waits for">
    <p>${sentence}</p>
    <div class="buttons">${buttons}</div>
  </section>`;
}

function button(label, run, busy, primary = false) {
  return html`<button type="button" class=${primary ? "primary" : ""} ?disabled=${busy} @click=${run}>${label}</button>`;
}
