// The view of all batches.

import { html, nothing, repeat } from "../shell/html.js";
import { loadStyle } from "../shell/style.js";
import { formatCost, formatNumber } from "../log/usage.js";
import { batchPath } from "../shell/router.js";
import { listBatches, listSharedBatches } from "../wire/batches.js";
import { progressBar, scoreLine, statusPill } from "./progress.js";

const BUSY_INTERVAL = 3000; // milliseconds between two requests while a batch runs
const IDLE_INTERVAL = 30_000;

/** The batches of the user, with their progress. */
export class BatchesView {
  constructor(page) {
    this.page = page;
    this.title = "Batches";
    this.items = null;
    this.shared = [];
    this.failure = "";
    this.keys = [
      { keys: ["j", "ArrowDown"], label: "Next batch", run: () => this.#move(1) },
      { keys: ["k", "ArrowUp"], label: "Previous batch", run: () => this.#move(-1) },
    ];
    loadStyle("styles/batches.css");
    this.#load();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }

  async #load() {
    try {
      if (!document.hidden || !this.items) [this.items, this.shared] = await Promise.all([loadAll(listBatches), loadAll(listSharedBatches)]);
      this.failure = "";
    } catch (error) {
      this.failure = error.sentence ?? error.message;
    }
    if (this.closed) return;
    const busy = [...(this.items ?? []), ...this.shared].some((batch) => batch.progress.status === "running");
    this.timer = setTimeout(() => this.#load(), busy ? BUSY_INTERVAL : IDLE_INTERVAL);
    this.page.draw();
  }

  #move(by) {
    const links = [...document.querySelectorAll(".batches a")];
    const at = links.indexOf(document.activeElement);
    links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
  }

  template() {
    return html`<div class="list-view">
      <div class="list-head"><h1>Batches</h1></div>
      ${this.failure ? html`<p class="failure" role="alert">${this.failure}</p>` : nothing} ${this.#list()}
      ${this.shared.length ? html`<h2>Shared with me</h2>${batchList(this.shared)}` : nothing}
    </div>`;
  }

  #list() {
    if (this.items === null) return html`<p class="quiet">Loading …</p>`;
    if (!this.items.length) {
      return html`<div class="centered"><p>No batch yet.</p><p class="quiet"><code>perdure batch run FILE</code> starts one; it is followed here.</p></div>`;
    }
    return batchList(this.items);
  }
}

function batchList(batches) {
  return html`<ul class="batches">
    ${repeat(batches, (batch) => `${batch.owner}/${batch.name}`, batchItem)}
  </ul>`;
}

async function loadAll(list) {
  const items = [];
  let cursor = null;
  do {
    const page = await list(cursor);
    items.push(...page.items);
    cursor = page.next_cursor ?? null;
  } while (cursor !== null);
  const order = { running: 0, paused: 1, stopped: 2, finished: 3 };
  return items.sort((a, b) => order[a.progress.status] - order[b.progress.status] || (b.progress.started ?? "").localeCompare(a.progress.started ?? ""));
}

function batchItem({ name, owner, access, model, samples, epochs, progress }) {
  const size = `${formatNumber(samples)} samples${epochs > 1 ? ` × ${epochs} epochs` : ""}`;
  return html`<li>
    <a href=${batchPath(name, access === "owner" ? null : owner)}>
      ${statusPill(progress)}
      <span class="item-main">
        <span class="item-title">${name}</span>
        <span class="item-facts">${model} · ${size}${access === "owner" ? "" : ` · shared by ${owner}`}</span>
        ${progressBar(progress)}
      </span>
      <span class="item-score">${scoreLine(progress) || nothing}</span>
      <span class="item-cost">${formatCost(progress.spent)}</span>
    </a>
  </li>`;
}
