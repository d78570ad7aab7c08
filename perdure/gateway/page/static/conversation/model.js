// A conversation as the page knows it: entries, drafts, status, and the way they stay current.

import { readEntry } from "../log/entry.js";
import { foldEntries, indexRows } from "../log/fold.js";
import { Drafts } from "../log/drafts.js";
import { PAGE, Span } from "../log/span.js";
import { ConversationApi } from "../wire/conversations.js";
import { Stream } from "../wire/stream.js";

const LARGE_GAP = 1000; // entries: beyond, the newest ones are loaded instead of all of them
const LASTING = new Set(["damaged", "not_found"]); // reasons to end that no new connection mends
const RETRY_INTERVAL = 3000; // milliseconds after a page that could not be loaded

/** Loads a conversation, follows it, and calls `changed()` after each change. */
export class ConversationModel {
  constructor(id, owner, changed) {
    this.api = new ConversationApi(id, owner);
    this.changed = changed;
    this.span = new Span();
    this.end = 0; // the number of slots of the log
    this.drafts = new Drafts();
    this.info = null;
    this.status = null;
    this.notices = [];
    this.connection = "connecting";
    this.error = null;
    this.loading = null; // the request for a page that is under way
    this.retryAt = 0; // when a page may be asked for again, after a failure
    this.failure = ""; // the sentence about it
    this.rows = [];
    this.rowIndex = new Map();
    this.closed = false;
  }

  /** Load the page around a slot, or the newest one, and follow the log from there. */
  async open(seq = null) {
    try {
      const [info] = await Promise.all([this.api.load(), this.#load(seq)]);
      if (this.closed) return;
      this.info = info;
      this.status ??= info.status;
      this.#follow();
    } catch (error) {
      this.error = error;
    }
    this.changed();
  }

  close() {
    this.closed = true;
    this.stream?.stop();
  }

  get isAtEnd() {
    return this.span.to >= this.end;
  }

  /** Load what surrounds a slot, unless it is there. */
  async jump(seq) {
    await this.#settle();
    if (!this.span.has(seq)) await this.#once(() => this.#load(seq));
  }

  /** Load the end of the log, unless it is there. */
  async jumpToEnd() {
    await this.#settle();
    if (!this.isAtEnd) await this.#once(() => this.#load(null));
  }

  /** Wait until no request for a page is under way. */
  async #settle() {
    while (this.loading) await this.loading.catch(() => {});
  }

  /** Load the page before the first entry; returns whether there was one. */
  async loadOlder() {
    const { from } = this.span;
    if (from === 0) return false;
    return this.#once(async () => {
      const page = await this.api.before(from, PAGE);
      this.span.extendUp(page.items.map((item) => readEntry(item)), page.from_seq);
      this.#fold();
    });
  }

  /** Load the page after the last entry; returns whether there was one. */
  async loadNewer() {
    const { to } = this.span;
    if (this.isAtEnd) return false;
    return this.#once(async () => {
      const page = await this.api.after(to - 1, PAGE);
      this.#grow(page);
    });
  }

  #grow(page) {
    this.end = Math.max(this.end, page.end_seq);
    this.span.extendDown(page.items.map((item) => readEntry(item)), page.through_seq + 1);
    this.#fold();
  }

  /** Run a request for a page unless one is under way; returns whether it was run. */
  async #once(load) {
    if (this.loading || performance.now() < this.retryAt) return false;
    this.loading = load();
    try {
      await this.loading;
      this.failure = "";
      return true;
    } catch (error) {
      this.retryAt = performance.now() + RETRY_INTERVAL;
      this.failure = error.sentence ?? error.message;
      return false;
    } finally {
      this.loading = null;
      this.changed();
    }
  }

  async #load(seq) {
    const first = seq === null ? null : Math.max(0, seq - PAGE / 2);
    const page = first === null ? await this.api.newest(PAGE) : await this.api.after(first - 1, PAGE);
    this.end = Math.max(this.end, page.end_seq);
    this.span = new Span(page.items.map((item) => readEntry(item)), page.from_seq, page.through_seq + 1);
    this.#fold();
  }

  #follow() {
    this.cursor = this.end - 1; // the last slot that was received or is on a page
    this.stream = new Stream({
      address: () => this.api.streamPath(this.cursor),
      onFrame: (frame) => this.apply(frame),
      onState: (state) => this.#connectionChanged(state),
      onError: (error) => {
        this.error = error;
        this.changed();
      },
    });
    this.stream.start();
  }

  #connectionChanged(state) {
    this.connection = state;
    this.changed();
  }

  /** Apply a frame of the stream. */
  apply(frame) {
    switch (frame.kind) {
      case "sync":
        this.#synchronize(frame);
        break;
      case "durable":
        this.#append(readEntry(frame.entry, frame.seq));
        break;
      case "delta":
        this.drafts.apply(frame);
        break;
      case "item_aborted":
        this.drafts.remove(frame.item_id);
        break;
      case "status":
        this.status = frame.status;
        break;
      case "error":
        if (LASTING.has(frame.code)) this.failure = frame.detail;
        break;
      case "notice":
        this.notices = [...this.notices.slice(-4), frame];
        break;
    }
    this.changed();
  }

  /** Begin a connection: the gateway sends the text of the steps at work anew. */
  #synchronize({ from_seq: from, through_seq: through }) {
    this.drafts.clear();
    if (through - from < LARGE_GAP) return;
    this.cursor = through;
    this.stream.restart();
    this.#once(() => this.#load(null));
  }

  #append(entry) {
    this.cursor = entry.seq;
    this.drafts.removeWrittenBy(entry.origin);
    const wasAtEnd = this.isAtEnd;
    this.end = Math.max(this.end, entry.seq + 1);
    if (!wasAtEnd || this.span.to > entry.seq) return;
    if (this.span.append(entry)) {
      this.stale = true;
      this.span.trimTop();
    }
  }

  /** Fold what has come since, once for all of it; called before the rows are drawn. */
  refresh() {
    if (this.stale) this.#fold();
  }

  #fold() {
    this.stale = false;
    this.rows = foldEntries(this.span.entries, this.rowIndex);
    this.rowIndex = indexRows(this.rows);
  }
}
