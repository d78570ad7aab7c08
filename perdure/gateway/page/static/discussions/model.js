// A discussion as the page knows it: its events, its status, and what follows live.

import { announce } from "../shell/announcer.js";
import { DiscussionApi } from "../wire/discussions.js";
import { Stream } from "../wire/stream.js";
import { assignColours, countBallots, foldEvents } from "./fold.js";

/** Follows a discussion, and calls `changed()` on each change. */
export class DiscussionModel {
  constructor(id, owner, changed) {
    this.api = new DiscussionApi(id, owner);
    this.changed = changed;
    this.info = null;
    this.phases = [];
    this.status = null;
    this.events = [];
    this.rows = [];
    this.colours = new Map();
    this.counts = {};
    this.through = 0; // the newest event when the page began to follow
    this.connection = "connecting";
    this.failure = "";
  }

  async open() {
    const loaded = await this.run(async () => {
      const [info, spec] = await Promise.all([this.api.load(), this.api.spec()]);
      Object.assign(this, { info, phases: spec.phases, status: info.status });
      return true;
    });
    if (!loaded || this.closed) return;
    this.stream = new Stream({
      address: () => this.api.streamPath(this.end),
      onFrame: (frame) => this.#take(frame),
      onState: (state) => ((this.connection = state), this.changed()),
      onError: (error) => ((this.failure = error.sentence), this.changed()),
    });
    this.stream.start();
  }

  close() {
    this.closed = true;
    this.stream?.stop();
  }

  /** The sequence of the newest event that is here. */
  get end() {
    return this.events.at(-1)?.sequence ?? 0;
  }

  /** The phase that it is in, with its options; null before the first. */
  get phase() {
    return this.phases.find(({ name }) => name === this.status?.phase) ?? null;
  }

  #take(frame) {
    switch (frame.kind) {
      case "sync":
        this.through = Math.max(this.through, frame.through_sequence);
        break;
      case "durable":
        if (frame.sequence > this.end) this.#append(frame.event);
        break;
      case "status":
        this.status = frame.status;
        break;
      case "error":
        if (frame.code === "not_found" || frame.code === "damaged") {
          this.failure = frame.detail;
          this.stream.stop();
        }
        break;
    }
    this.changed();
  }

  #append(event) {
    this.events.push(event);
    this.stale = true;
    if (event.sequence <= this.through) return;
    if (event.type === "SPEECH") announce(`${event.speaker} has spoken`);
    if (event.type === "SUMMARY") announce("The moderator has summed up");
  }

  /** Fold the events, where there are new ones. */
  refold() {
    if (!this.stale) return;
    this.stale = false;
    this.rows = foldEvents(this.events);
    this.colours = assignColours(this.info.agents, this.events);
    this.counts = countBallots(this.rows);
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
}
