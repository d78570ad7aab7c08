// A stream of frames that comes back by itself: after an outage, a restart, a hidden tab.

import { send } from "./api.js";
import { EventParser } from "./event_stream.js";

const FIRST_PAUSE = 500; // milliseconds
const LONGEST_PAUSE = 10_000;
const MAX_SILENCE = 45_000; // the gateway pings more often
const HIDDEN_GRACE = 20_000; // a browser has six connections to a host for all its tabs

/**
 * Follows a stream until `stop`.
 *
 * `address()` is asked for the path at each attempt, so that it has the newest cursor.
 * `onFrame(frame)` receives each frame; `onState(state)` is told "connecting", "live", "waiting",
 * "offline" or "ended"; `onError(error)` an error that no further attempt would mend.
 */
export class Stream {
  constructor({ address, onFrame, onState = () => {}, onError = () => {} }) {
    Object.assign(this, { address, onFrame, onState, onError });
    this.attempts = 0;
    this.stopped = false;
    this.connection = null; // the AbortController of the connection that there is
    this.listeners = [
      [window, "online", () => this.#connect()],
      [window, "offline", () => this.#disconnect("offline")],
      [document, "visibilitychange", () => this.#visibility()],
    ];
  }

  start() {
    for (const [target, name, listener] of this.listeners) target.addEventListener(name, listener);
    this.#connect();
  }

  stop() {
    for (const [target, name, listener] of this.listeners) target.removeEventListener(name, listener);
    this.#disconnect("ended");
    clearTimeout(this.hiding);
    this.stopped = true;
  }

  /** Drop the connection and connect again with the cursor as it is now. */
  restart() {
    this.#disconnect("connecting");
    this.#connect();
  }

  async #connect() {
    if (this.stopped || this.connection) return;
    clearTimeout(this.retry);
    const connection = (this.connection = new AbortController());
    this.onState("connecting");
    try {
      const headers = { Accept: "text/event-stream" };
      const response = await send("GET", this.address(), { signal: connection.signal, headers });
      this.onState("live");
      await this.#read(response.body.getReader(), connection);
      this.#reconnect(connection, null);
    } catch (error) {
      if (isFinal(error)) this.#end(connection, error);
      else this.#reconnect(connection, error.retryAfter ?? null);
    }
  }

  async #read(reader, connection) {
    const decoder = new TextDecoder();
    const parser = new EventParser();
    while (!connection.signal.aborted) {
      this.#watch(connection);
      const { done, value } = await reader.read();
      if (done) return;
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        if (connection.signal.aborted) return;
        this.attempts = 0;
        this.onFrame(JSON.parse(event.data));
      }
    }
  }

  /** Give up a connection on which nothing has come for too long. */
  #watch(connection) {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      connection.abort();
      this.#reconnect(connection, null);
    }, MAX_SILENCE);
  }

  /** Connect again after a pause, unless the connection is not the one that there is. */
  #reconnect(connection, retryAfter) {
    if (this.connection !== connection) return;
    this.#disconnect(navigator.onLine ? "waiting" : "offline");
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.attempts++);
    const jittered = pause * (0.75 + Math.random() / 2);
    this.retry = setTimeout(() => document.hidden || this.#connect(), Math.max(jittered, (retryAfter ?? 0) * 1000));
  }

  #end(connection, error) {
    if (this.connection !== connection) return;
    this.stop();
    this.onError(error);
  }

  #disconnect(state) {
    if (this.stopped) return;
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    const connection = this.connection;
    this.connection = null;
    connection?.abort();
    this.onState(state);
  }

  #visibility() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => this.#disconnect("waiting"), HIDDEN_GRACE);
    else this.#connect();
  }
}

/** Tell whether an error is about the request itself, so that no repetition helps. */
function isFinal(error) {
  return error.status >= 400 && error.status < 500 && ![408, 425, 429].includes(error.status);
}
