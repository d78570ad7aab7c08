// Scrolling through the log: keeps the place while rows come and go above, and follows the end.

const NEAR = 1500; // pixels from an edge at which more rows are fetched
const AT_END = 60; // pixels from the bottom that still count as the end

/** The scrolling of the element that holds the rows. */
export class Scroller {
  constructor({ onNearTop, onNearBottom, onMoved }) {
    Object.assign(this, { onNearTop, onNearBottom, onMoved });
    this.element = null;
    this.following = true; // whether the end of the log stays in sight
    this.scheduled = false;
    this.scrolled = () => this.#schedule();
  }

  /** Take the element that scrolls. */
  attach(element) {
    if (element === this.element) return;
    this.element?.removeEventListener("scroll", this.scrolled);
    this.element = element ?? null;
    this.element?.addEventListener("scroll", this.scrolled, { passive: true });
  }

  get isAtBottom() {
    const { scrollHeight, scrollTop, clientHeight } = this.element;
    return scrollHeight - scrollTop - clientHeight <= AT_END;
  }

  /** Draw by `draw`, and keep in its place what was read before. */
  around(draw) {
    const anchor = this.following ? null : this.#findAnchor();
    draw();
    if (!this.element) return;
    if (this.following) this.element.scrollTop = this.element.scrollHeight;
    else if (anchor) this.#restore(anchor);
  }

  /** Bring a row into sight; returns whether it is mounted. */
  show(seq, block = "center") {
    const row = this.element?.querySelector(`[data-seq="${seq}"]`);
    row?.scrollIntoView({ block });
    return row !== null && row !== undefined;
  }

  /** Return the seq of the first row in sight, and how far below the top it is. */
  #findAnchor() {
    if (!this.element) return null;
    const rows = this.element.children;
    const top = this.element.getBoundingClientRect().top;
    let [from, to] = [0, rows.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (rows[middle].getBoundingClientRect().bottom > top) to = middle;
      else from = middle + 1;
    }
    while (from < rows.length && rows[from].dataset.seq === undefined) from += 1;
    const row = rows[from];
    return row ? { seq: row.dataset.seq, top: row.getBoundingClientRect().top } : null;
  }

  #restore({ seq, top }) {
    const row = this.element.querySelector(`[data-seq="${seq}"]`);
    if (row) this.element.scrollTop += row.getBoundingClientRect().top - top;
  }

  #schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.check();
    });
  }

  /** Ask for more rows where an edge is near. */
  check() {
    if (!this.element) return;
    const { scrollTop, scrollHeight, clientHeight } = this.element;
    this.onMoved(this.isAtBottom);
    if (scrollTop < NEAR) this.onNearTop();
    if (scrollHeight - scrollTop - clientHeight < NEAR) this.onNearBottom();
  }
}
