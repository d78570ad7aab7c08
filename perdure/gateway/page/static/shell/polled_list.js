// The view of a list that is asked for again and again, of the user's items and of shared ones.

import { html, nothing, repeat } from "./html.js";
import { loadStyle } from "./style.js";

const BUSY_INTERVAL = 3000; // milliseconds between two requests while something goes on
const IDLE_INTERVAL = 30_000;

/**
 * A list of batches or discussions.
 *
 * `kind` has the `title`, the `noun` and the `name` of the list, which is that of its style and its class;
 * `list(cursor)` and `listShared(cursor)` load a page; `compare(a, b)` orders items, `isBusy(item)` tells
 * whether one goes on, `keyOf(item)` names it, `show(item)` draws it, and `hint` says how to start one.
 */
export class PolledList {
  constructor(page, kind) {
    this.page = page;
    this.kind = kind;
    this.title = kind.title;
    this.items = null;
    this.shared = [];
    this.failure = "";
    this.keys = [
      { keys: ["j", "ArrowDown"], label: `Next ${kind.noun}`, run: () => this.#move(1) },
      { keys: ["k", "ArrowUp"], label: `Previous ${kind.noun}`, run: () => this.#move(-1) },
    ];
    loadStyle(`styles/${kind.name}.css`);
    this.#load();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }

  async #load() {
    const { list, listShared, compare, isBusy } = this.kind;
    try {
      if (!document.hidden || !this.items) [this.items, this.shared] = await Promise.all([loadAll(list, compare), loadAll(listShared, compare)]);
      this.failure = "";
    } catch (error) {
      this.failure = error.sentence ?? error.message;
    }
    if (this.closed) return;
    const busy = [...(this.items ?? []), ...this.shared].some(isBusy);
    this.timer = setTimeout(() => this.#load(), busy ? BUSY_INTERVAL : IDLE_INTERVAL);
    this.page.draw();
  }

  #move(by) {
    const links = [...document.querySelectorAll(`.${this.kind.name} a`)];
    const at = links.indexOf(document.activeElement);
    links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
  }

  template() {
    return html`<div class="list-view">
      <div class="list-head"><h1>${this.title}</h1></div>
      ${this.failure ? html`<p class="failure" role="alert">${this.failure}</p>` : nothing} ${this.#own()}
      ${this.shared.length ? html`<h2>Shared with me</h2>${this.#show(this.shared)}` : nothing}
    </div>`;
  }

  #own() {
    if (this.items === null) return html`<p class="quiet">Loading …</p>`;
    if (this.items.length) return this.#show(this.items);
    return html`<div class="centered"><p>No ${this.kind.noun} yet.</p><p class="quiet">${this.kind.hint}</p></div>`;
  }

  #show(items) {
    return html`<ul class=${this.kind.name}>
      ${repeat(items, this.kind.keyOf, this.kind.show)}
    </ul>`;
  }
}

async function loadAll(list, compare) {
  const items = [];
  let cursor = null;
  do {
    const page = await list(cursor);
    items.push(...page.items);
    cursor = page.next_cursor ?? null;
  } while (cursor !== null);
  return items.sort(compare);
}
