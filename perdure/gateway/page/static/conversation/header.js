// The head of a conversation: title, status, what it has used, and what can be done with it.

import { html, nothing } from "../shell/html.js";
import { phaseOf, statusClass, statusWord } from "../log/status.js";
import { countTokens, formatCost, formatNumber, formatSeconds, formatTokens, secondsBetween } from "../log/usage.js";

const CONNECTIONS = {
  connecting: "Connecting …",
  waiting: "Connection lost: trying again",
  offline: "Offline: what you see is kept, the rest comes when the network is back",
};

/** Show the head; `actions` has a function for each button. */
export function conversationHeader({ title, model, status, actions, canWrite, busy, workflowUrl }) {
  const { info } = model;
  const working = status.status === "running";
  return html`<header class="conversation-head">
    <div class="title-line">
      <h1 title=${title}>${title}</h1>
      <span class=${`pill ${statusClass(phaseOf(status))}`}>${statusWord(phaseOf(status))}</span>
      ${info.owner && info.access !== "owner" ? html`<span class="quiet">shared by ${info.owner} (${info.access})</span>` : nothing}
      ${model.connection === "live" ? nothing : html`<span class="connection" role="status">${CONNECTIONS[model.connection] ?? ""}</span>`}
      <div class="buttons" role="toolbar" aria-label="Conversation">
        ${canWrite && working
          ? html`<button type="button" ?disabled=${busy} @click=${actions.pause}>Pause</button>
              <button type="button" ?disabled=${busy} @click=${actions.interrupt}>Interrupt</button>`
          : nothing}
        <button type="button" @click=${actions.openFiles}>Files</button>
        <button type="button" @click=${actions.openTimeline}>Timeline</button>
        <button type="button" aria-haspopup="dialog" @click=${actions.openMore}>More</button>
        ${workflowUrl ? html`<a class="button" href=${workflowUrl} target="_blank" rel="noopener">Workflow</a>` : nothing}
      </div>
    </div>
    ${totals(status, info)}
  </header>`;
}

function totals(status, info) {
  const { spent } = status;
  const facts = [
    ["Model", status.model ?? "–", status.model],
    ["Tokens", formatTokens(countTokens(spent)), `${formatNumber(countTokens(spent))} tokens`],
    ["Cost", formatCost(spent)],
    ["Model time", formatSeconds(spent.latency ?? 0)],
    ["Since start", info.created && info.updated ? formatSeconds(secondsBetween(info.created, info.updated)) : "–"],
    ["Events", formatNumber(status.next_seq)],
  ];
  return html`<dl class="facts">
    ${facts.map(([name, value, title]) => html`<div title=${title ?? nothing}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}
