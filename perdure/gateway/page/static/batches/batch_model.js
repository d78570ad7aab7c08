// A batch as the page knows it: its progress, its summary, and the samples that are loaded.

import { BatchApi } from "../wire/batches.js";
import { outcomeOf } from "./samples.js";

const BUSY_INTERVAL = 2000; // milliseconds between two requests while it runs
const IDLE_INTERVAL = 30_000;
const PAGES_AT_FIRST = 5; // of 200 samples

/** Loads a batch, asks for its progress again and again, and calls `changed()` on each change. */
export class BatchModel {
  constructor(name, owner, changed) {
    this.api = new BatchApi(name, owner);
    this.changed = changed;
    this.batch = null;
    this.summary = null;
    this.samples = [];
    this.cursor = null;
    this.complete = false;
    this.loading = false;
    this.failure = "";
  }

  async open() {
    await this.refresh();
    for (let page = 0; page < PAGES_AT_FIRST && !this.complete && !this.failure; page += 1) await this.more();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }

  get epochs() {
    return this.batch?.epochs ?? 1;
  }

  /** Load the progress, and the results where there are new ones. */
  async refresh() {
    clearTimeout(this.timer);
    const before = this.batch?.progress;
    await this.run(async () => {
      this.batch = await this.api.load();
      const { progress } = this.batch;
      const done = (one) => (one ? one.scored + one.limited + one.failed : -1);
      if (done(before) !== done(progress) || before?.status !== progress.status) await this.#reload(before);
    });
    if (this.closed) return;
    const busy = this.batch?.progress.status === "running";
    this.timer = setTimeout(() => (document.hidden ? this.refreshLater() : this.refresh()), busy ? BUSY_INTERVAL : IDLE_INTERVAL);
  }

  refreshLater() {
    this.timer = setTimeout(() => this.refresh(), BUSY_INTERVAL);
  }

  async #reload(before) {
    this.summary = await this.api.summary();
    if (before) await this.#reloadSamples();
  }

  /** Load the samples again that are loaded. */
  async #reloadSamples() {
    const count = this.samples.length;
    const samples = [];
    let cursor = null;
    do {
      const page = await this.api.results(cursor);
      samples.push(...page.items);
      cursor = page.next_cursor ?? null;
    } while (cursor !== null && samples.length < count);
    this.#take(samples, cursor);
  }

  /** Load the next page of samples. */
  async more() {
    if (this.loading || this.complete) return;
    this.loading = true;
    await this.run(async () => {
      const page = await this.api.results(this.cursor);
      this.#take([...this.samples, ...page.items], page.next_cursor ?? null);
    });
    this.loading = false;
    this.changed();
  }

  #take(samples, cursor) {
    this.samples = samples;
    this.cursor = cursor;
    this.complete = cursor === null;
  }

  /** Run a request; `failure` is the sentence about what went wrong. */
  async run(act) {
    try {
      const result = await act();
      this.failure = "";
      return result;
    } catch (error) {
      this.failure = error.sentence ?? error.message;
      return undefined;
    } finally {
      if (!this.closed) this.changed();
    }
  }

  /** Return the loaded samples of an outcome. */
  select(outcome) {
    if (outcome === "all") return this.samples;
    return this.samples.filter((sample) => outcomeOf(sample, this.epochs) === outcome);
  }
}
