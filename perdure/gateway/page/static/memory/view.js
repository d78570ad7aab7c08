// The view of the user's memories.

import { html, nothing, repeat } from "../shell/html.js";
import { DataView, dangerButton, dataTable } from "../shell/data_view.js";
import { confirmChoice } from "../shell/dialog.js";
import { get, post, remove, withQuery } from "../wire/api.js";
import { formatAge } from "../log/usage.js";
import { conversationPath } from "../shell/router.js";

const PAGE = 50;
const FOUND = 20;
const SOURCES = { user: "you", agent: "an agent", conversation: "a conversation" };

/** The memories: list, search, put, remove. */
export class MemoryView extends DataView {
  constructor(page) {
    super(page, "Memory");
    this.items = null;
    this.cursor = null;
    this.query = "";
    this.keys = [{ keys: ["/"], label: "Search", run: () => document.getElementById("memory-query").focus() }];
    if (page.may("write")) this.keys.push({ keys: ["c"], label: "Remember a text", run: () => document.getElementById("memory-text").focus() });
    this.#load();
  }

  /** Load what the search finds, or the first page of all. */
  async #load() {
    const query = this.query;
    await this.run(async () => {
      const items = query ? await search(query) : await this.#list(null);
      if (query === this.query) this.items = items;
    });
  }

  async #list(cursor) {
    const page = await get(withQuery("/v1/memories", { cursor, limit: PAGE }));
    this.cursor = page.next_cursor ?? null;
    return page.items;
  }

  async #more() {
    await this.run(async () => {
      this.items = [...this.items, ...(await this.#list(this.cursor))];
    });
  }

  template() {
    return html`<div class="data-view">
      <h1>Memory</h1>
      <p class="quiet">Facts that agents with memory find in all of your conversations.</p>
      <form class="inline" role="search" @submit=${(event) => this.#search(event)}>
        <input id="memory-query" name="query" type="search" class="grow" aria-label="Search the memories" placeholder="Search" maxlength="8192" />
        <button type="submit">Search</button>
      </form>
      ${this.alert()} ${this.items === null ? html`<p class="quiet">Loading …</p>` : this.#table()}
      ${this.cursor && !this.query ? html`<div class="buttons"><button type="button" @click=${() => this.#more()}>Show more</button></div>` : nothing}
      ${this.page.may("write") ? this.#form() : nothing}
    </div>`;
  }

  #table() {
    if (!this.items.length) return html`<p class="quiet">${this.query ? "Nothing is found." : "There is no memory yet."}</p>`;
    const rows = repeat(this.items, ({ id }) => id, (memory) => this.#row(memory));
    return dataTable("Memories", ["Text", "Tags", "From", "Since", " Remove"], rows);
  }

  #row(memory) {
    const { key, text, tags, source, conversation_id: conversation, created } = memory;
    const from = SOURCES[source] ?? source;
    return html`<tr>
      <td class="memory-text">${key ? html`<b>${key}</b><br />` : nothing}${text}</td>
      <td>${tags.join(", ")}</td>
      <td>${conversation ? html`<a href=${conversationPath(conversation)}>${from}</a>` : from}</td>
      <td>${formatAge(created)}</td>
      <td>${this.page.may("write") ? dangerButton("Remove", key ?? text.slice(0, 60), () => this.#remove(memory)) : nothing}</td>
    </tr>`;
  }

  #form() {
    return html`<form class="stacked data-form" @submit=${(event) => this.#put(event)}>
      <h2>Remember a text</h2>
      <label for="memory-text">Text</label>
      <textarea id="memory-text" name="text" rows="3" required></textarea>
      <label for="memory-key">Key <span class="quiet">(a later text of the same key replaces it)</span></label>
      <input id="memory-key" name="key" maxlength="255" autocomplete="off" />
      <label for="memory-tags">Tags <span class="quiet">(with commas between them)</span></label>
      <input id="memory-tags" name="tags" autocomplete="off" />
      <div class="buttons"><button type="submit" class="primary">Remember</button></div>
    </form>`;
  }

  async #search(event) {
    event.preventDefault();
    this.query = event.target.elements.query.value.trim();
    await this.#load();
  }

  async #put(event) {
    event.preventDefault();
    const form = event.target;
    const { text, key, tags } = form.elements;
    const fields = { text: text.value, tags: tags.value.split(",").map((tag) => tag.trim()).filter(Boolean) };
    if (key.value.trim()) fields.key = key.value.trim();
    if (!(await this.run(() => post("/v1/memories", fields)))) return;
    form.reset();
    await this.#load();
  }

  async #remove({ id }) {
    const sure = await confirmChoice("Remove", "No agent finds this memory again, and its text is deleted.", "Remove it");
    if (sure && (await this.run(() => remove(`/v1/memories/${encodeURIComponent(id)}`)))) await this.#load();
  }
}

async function search(query) {
  const { items } = await post("/v1/search/memories", { query, limit: FOUND });
  return items.map(({ memory }) => memory);
}
