// The list of conversations, kept current by the user's feed.

import { get } from "../wire/api.js";
import { ConversationApi, listConversations, listShared } from "../wire/conversations.js";
import { Stream } from "../wire/stream.js";
import { parseTime } from "../log/usage.js";

const PAGE = 50;
const TITLE_DELAY = 2000; // milliseconds

/** The filters of the list: their labels, and the statuses that they let through; `shared` has others' conversations. */
export const FILTERS = {
  all: ["All", null],
  working: ["Running", ["running", "waiting"]],
  attention: ["Needs you", ["waiting_for_confirmation", "waiting_for_answer", "paused", "error", "stuck"]],
  rest: ["At rest", ["idle", "finished"]],
  closed: ["Closed", ["closed"]],
  shared: ["Shared with me", null],
};

/** Sort conversations: the newest activity first. */
export function sortByActivity(items) {
  const time = (item) => parseTime(item.updated ?? item.created) || 0;
  return [...items].sort((a, b) => time(b) - time(a) || (a.id < b.id ? 1 : -1));
}

/** Tell whether a conversation has all words of a search in its title, id, model or tags. */
export function matches(item, search) {
  const { status } = item;
  const text = [status.title, item.id, item.owner, status.model, ...(status.tags ?? [])].join(" ").toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/**
 * Tell whether the list has conversations of such an id. Those that a batch or another conversation
 * began have ids made from names, of version 5: they are shown there.
 */
export function isListed(id) {
  return id[14] !== "5";
}

/** Loads the list, follows the feed, and calls `changed()` after each change. */
export class ListModel {
  constructor(changed) {
    this.changed = changed;
    this.items = new Map();
    this.shared = [];
    this.cursor = null;
    this.complete = false;
    this.loading = false;
    this.error = null;
    this.connection = "connecting";
    this.fetching = new Set();
  }

  async open() {
    await Promise.all([this.more(), this.loadShared()]);
    if (this.closed) return;
    this.stream = new Stream({
      address: () => "/v1/feed",
      onFrame: (frame) => this.apply(frame),
      onState: (state) => this.#connectionChanged(state),
      onError: (error) => this.#fail(error),
    });
    this.stream.start();
  }

  close() {
    this.closed = true;
    clearTimeout(this.titles);
    this.stream?.stop();
  }

  /** Load the next page; the first one if there is none yet. */
  async more() {
    if (this.loading || this.complete) return;
    this.loading = true;
    this.changed();
    try {
      const page = await listConversations({ cursor: this.cursor, limit: PAGE });
      page.items.forEach((item) => this.#take(item));
      this.cursor = page.next_cursor ?? null;
      this.complete = this.cursor === null;
      this.error = null;
    } catch (error) {
      this.error = error;
    }
    this.loading = false;
    this.changed();
  }

  /** Load the newest conversations that others share: no feed tells of them. */
  async loadShared() {
    try {
      this.shared = (await listShared()).items;
      this.changed();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Load the newest page again: the feed does not tell what happened before it. */
  async #catchUp() {
    try {
      const page = await listConversations({ limit: PAGE });
      page.items.forEach((item) => this.#take(item));
      this.changed();
    } catch {
      // The feed is about to say so.
    }
  }

  #connectionChanged(state) {
    if (state === "live") this.#catchUp();
    this.connection = state;
    this.changed();
  }

  #fail(error) {
    this.error = error;
    this.changed();
  }

  /** Apply a frame of the feed. */
  apply({ conversation_id: id, frame, removed }) {
    if (id === undefined) return;
    const item = this.items.get(id);
    if (removed) this.items.delete(id);
    else if (!item) isListed(id) && this.#fetch(id);
    else if (frame?.kind === "status") this.#update(item, frame.status);
    this.changed();
  }

  #update(item, status) {
    const moved = status.next_seq !== item.status.next_seq;
    const updated = moved ? new Date().toISOString() : item.updated;
    this.#take({ ...item, status, updated });
  }

  /** Take a conversation; a page of the list may be older than what the feed has told. */
  #take(item) {
    const known = this.items.get(item.id);
    const isOld = known && known.status.next_seq > item.status.next_seq;
    const { status, updated } = isOld ? known : item;
    const title = item.status.title ?? known?.status.title ?? null;
    this.items.set(item.id, { ...item, updated, status: { ...status, title } });
    if (title === null && !known) this.#findTitles();
  }

  /** Load the newest page soon: only the list knows a conversation without a title by its task. */
  #findTitles() {
    this.titles ??= setTimeout(async () => {
      await this.#catchUp();
      this.titles = null;
    }, TITLE_DELAY);
  }

  async #fetch(id) {
    if (this.fetching.has(id)) return;
    this.fetching.add(id);
    try {
      this.#take(await get(new ConversationApi(id).path()));
      this.changed();
    } catch {
      // It is gone again, or the next frame about it tries anew.
    }
    this.fetching.delete(id);
  }

  /** Return the conversations that a filter and a search let through, in order. */
  select(filter, search) {
    const statuses = FILTERS[filter][1];
    const items = filter === "shared" ? this.shared : [...this.items.values()];
    const shown = items.filter((item) => !statuses || statuses.includes(item.status.status));
    return sortByActivity(search.trim() ? shown.filter((item) => matches(item, search.trim())) : shown);
  }
}
