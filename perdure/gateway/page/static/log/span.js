// The entries that the page holds: slots `from` up to, not including, `to`, without gaps.

export const PAGE = 100; // entries a request
export const MAX_HELD = 3000; // entries in memory

/** A stretch of the log that grows at both ends and is trimmed at the other one. */
export class Span {
  constructor(entries = [], from = 0, to = from + entries.length) {
    this.entries = entries;
    this.from = from;
    this.to = to;
  }

  get isEmpty() {
    return this.from === this.to;
  }

  /** Take an entry of the slot `to`; returns whether it was that of this slot. */
  append(entry) {
    if (entry.seq !== this.to) return false;
    this.entries.push(entry);
    this.to += 1;
    return true;
  }

  /** Take the entries of the slots before `from`, down to slot `from` of the page. */
  extendUp(entries, from) {
    const older = entries.filter((entry) => entry.seq < this.from);
    this.entries = [...older, ...this.entries];
    this.from = Math.min(from, this.from);
    this.#trim("bottom");
  }

  /** Take the entries of the slots from `to` on, up to slot `to` of the page. */
  extendDown(entries, to) {
    const newer = entries.filter((entry) => entry.seq >= this.to);
    this.entries = [...this.entries, ...newer];
    this.to = Math.max(to, this.to);
    this.#trim("top");
  }

  /** Let go of what is far above, when new entries have come at the end. */
  trimTop() {
    this.#trim("top");
  }

  has(seq) {
    return seq >= this.from && seq < this.to;
  }

  #trim(end) {
    const excess = this.entries.length - MAX_HELD;
    if (excess <= 0) return;
    if (end === "top") {
      this.entries = this.entries.slice(excess);
      this.from = this.entries[0].seq;
    } else {
      this.entries = this.entries.slice(0, -excess);
      this.to = this.entries.at(-1).seq + 1;
    }
  }
}
