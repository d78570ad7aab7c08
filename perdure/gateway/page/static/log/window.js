// Which of the rows are mounted: at most MAX_ROWS, around the place that is read.

export const MAX_ROWS = 300;
export const STEP = 30;

/**
 * The mounted stretch of rows, by the seqs of its first and last row.
 *
 * `last` is Infinity while the end of the log is followed.
 */
export class RowWindow {
  constructor() {
    this.first = -1;
    this.last = Infinity;
  }

  /** Follow the end. */
  followEnd() {
    this.first = -1;
    this.last = Infinity;
  }

  /** Show the rows around a slot. */
  around(rows, seq) {
    const at = rows.findLastIndex((row) => row.seq <= seq);
    this.#set(rows, Math.max(0, at - STEP), at + STEP);
  }

  /** Return the mounted rows. */
  select(rows) {
    const shown = rows.filter((row) => row.seq >= this.first && row.seq <= this.last);
    if (this.first === -1 && shown.length > STEP) return shown.slice(-STEP);
    return shown.length > MAX_ROWS ? shown.slice(-MAX_ROWS) : shown;
  }

  /** Mount rows above; returns false if there are none in `rows`. */
  extendUp(rows) {
    const mounted = this.select(rows);
    const start = rows.indexOf(mounted[0]);
    if (start <= 0) return false;
    const end = rows.indexOf(mounted.at(-1));
    const first = Math.max(0, start - STEP);
    this.#set(rows, first, Math.min(end, first + MAX_ROWS - 1));
    return true;
  }

  /** Mount rows below; returns false if there are none in `rows`. */
  extendDown(rows) {
    const mounted = this.select(rows);
    const end = mounted.length ? rows.indexOf(mounted.at(-1)) : -1;
    if (end >= rows.length - 1) return false;
    const last = Math.min(rows.length - 1, end + STEP);
    this.#set(rows, Math.max(rows.indexOf(mounted[0]), last - MAX_ROWS + 1, 0), last);
    return true;
  }

  /** Fix the window to the rows that are mounted now, so that it no longer follows the end. */
  hold(rows) {
    const mounted = this.select(rows);
    if (mounted.length) this.#set(rows, rows.indexOf(mounted[0]), rows.indexOf(mounted.at(-1)));
  }

  #set(rows, start, end) {
    this.first = rows[start]?.seq ?? -1;
    this.last = rows[Math.min(end, rows.length - 1)]?.seq ?? Infinity;
  }
}
