// Which long texts are unfolded.

/** The keys of unfolded texts; each key begins with the seq of its row. */
export class Folds {
  constructor(changed) {
    this.changed = changed;
    this.unfolded = new Set();
    this.versions = new Map();
  }

  has(key) {
    return this.unfolded.has(key);
  }

  toggle(key) {
    if (!this.unfolded.delete(key)) this.unfolded.add(key);
    const seq = Number(key.split(" ", 1)[0]);
    this.versions.set(seq, this.version(seq) + 1);
    this.changed();
  }

  /** Return a number that changes whenever a text of the row is folded or unfolded. */
  version(seq) {
    return this.versions.get(seq) ?? 0;
  }
}
