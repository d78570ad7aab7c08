// The view of all conversations.

import { html, nothing, repeat } from "../shell/html.js";
import { conversationPath } from "../shell/router.js";
import { formatAge, formatCost, parseTime } from "../log/usage.js";
import { phaseOf, statusClass, statusWord, waitsFor } from "../log/status.js";
import { FILTERS, ListModel } from "./model.js";

const MAX_SHOWN = 300;
const AGE_INTERVAL = 30_000; // milliseconds between two drawings of the ages

/** The list of conversations with its search and filters. */
export class ListView {
  constructor(page) {
    this.page = page;
    this.model = new ListModel(page.draw);
    this.filter = "all";
    this.search = "";
    this.title = "Conversations";
    this.keys = [
      { keys: ["j", "ArrowDown"], label: "Next conversation", run: () => this.#move(1) },
      { keys: ["k", "ArrowUp"], label: "Previous conversation", run: () => this.#move(-1) },
      { keys: ["/"], label: "Search", run: () => document.getElementById("search").focus() },
      { keys: ["f"], label: "Next filter", run: () => this.#nextFilter() },
      { keys: ["Escape"], label: "Leave the search", inFields: true, run: () => document.activeElement.blur() },
    ];
    this.model.open();
    this.ages = setInterval(() => this.#drawAges(), AGE_INTERVAL);
  }

  close() {
    clearInterval(this.ages);
    this.model.close();
  }

  #move(by) {
    const links = [...document.querySelectorAll(".conversations a")];
    const at = links.indexOf(document.activeElement);
    links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
  }

  #nextFilter() {
    const names = Object.keys(FILTERS);
    this.setFilter(names[(names.indexOf(this.filter) + 1) % names.length]);
  }

  #drawAges() {
    if (this.filter === "shared" && !document.hidden) this.model.loadShared();
    this.page.draw();
  }

  setFilter(filter) {
    this.filter = filter;
    if (filter === "shared") this.model.loadShared();
    this.page.draw();
  }

  template() {
    const { model } = this;
    const shown = model.select(this.filter, this.search);
    return html`<div class="list-view">
      <div class="list-head">
        <h1>Conversations</h1>
        ${this.page.may("write") ? html`<a class="button primary" href="/new">New conversation</a>` : nothing}
      </div>
      <div class="list-tools">
        <input id="search" type="search" placeholder="Search titles, models, tags" aria-label="Search" .value=${this.search} @input=${(event) => this.#searchFor(event.target.value)} />
        <div class="filters" role="group" aria-label="Filter">${Object.entries(FILTERS).map(([name, [label]]) => this.#filterChip(name, label))}</div>
      </div>
      ${model.connection === "waiting" || model.connection === "offline" ? html`<p class="connection" role="status">No connection: the list is as it was, and is loaded again when the gateway answers.</p>` : nothing}
      ${model.error ? html`<p class="failure" role="alert">${model.error.sentence ?? model.error.message}</p>` : nothing}
      <ul class="conversations" aria-busy=${model.loading}>
        ${repeat(shown.slice(0, MAX_SHOWN), (item) => `${item.owner}/${item.id}`, (item) => this.#item(item))}
      </ul>
      ${shown.length || model.loading ? nothing : this.#empty()} ${this.#more()}
    </div>`;
  }

  #searchFor(text) {
    this.search = text;
    this.page.draw();
    if (text && !this.model.complete) this.model.more();
  }

  #filterChip(name, label) {
    const count = name === "all" ? this.model.items.size : this.model.select(name, "").length;
    return html`<button type="button" class="chip" aria-pressed=${this.filter === name} @click=${() => this.setFilter(name)}>${label} <span class="count">${count}</span></button>`;
  }

  #item(item) {
    const { status } = item;
    const need = waitsFor(status);
    const mine = item.access === "owner";
    const when = item.updated ?? item.created;
    return html`<li>
      <a href=${conversationPath(item.id, mine ? null : item.owner)}>
        <span class=${`pill ${statusClass(phaseOf(status))}`}>${statusWord(phaseOf(status))}</span>
        <span class="item-main">
          <span class="item-title">${status.title ?? "Untitled"}</span>
          ${need ? html`<span class=${`item-need ${status.status === "error" || status.trouble ? "bad" : ""}`}>${need}</span>` : nothing}
          <span class="item-facts">${[status.model, mine ? "" : `shared by ${item.owner}`, ...(status.tags ?? [])].filter(Boolean).join(" · ")}</span>
        </span>
        <span class="item-cost">${formatCost(status.spent, "cost unknown")}</span>
        <time datetime=${when ?? ""} title=${when ? new Date(parseTime(when)).toLocaleString() : ""}>${formatAge(when)}</time>
      </a>
    </li>`;
  }

  #empty() {
    if (this.filter === "shared" && !this.search) return html`<p class="quiet centered">Nobody shares a conversation with you.</p>`;
    if (this.search || this.filter !== "all") return html`<p class="quiet centered">No conversation is like this.</p>`;
    return html`<div class="centered">
      <p>No conversation yet.</p>
      ${this.page.may("write") ? html`<p><a class="button primary" href="/new">Start the first one</a></p>` : nothing}
    </div>`;
  }

  #more() {
    if (this.model.complete || this.filter === "shared") return nothing;
    return html`<p class="centered"><button type="button" ?disabled=${this.model.loading} @click=${() => this.model.more()}>${this.model.loading ? "Loading …" : "Load more"}</button></p>`;
  }
}
