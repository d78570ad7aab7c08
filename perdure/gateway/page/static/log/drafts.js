// The text of steps at work, as it grows: `delta` frames, until the step's events are in the log.

/** The drafts of a conversation by the ids of their steps. */
export class Drafts {
  constructor() {
    this.items = new Map();
  }

  /** Apply a `delta` frame; a higher attempt replaces the text of the lower ones. */
  apply({ item_id, step, attempt, offset, text }) {
    const draft = this.items.get(item_id);
    if (draft && attempt < draft.attempt) return;
    if (!draft || attempt > draft.attempt) {
      const chars = offset + countChars(text);
      this.items.set(item_id, { id: item_id, step, attempt, text, start: offset, chars });
      return;
    }
    // `offset` counts characters, as a string of JavaScript does not.
    const kept = Math.max(0, offset - draft.start);
    const before = offset === draft.chars ? draft.text : [...draft.text].slice(0, kept).join("");
    draft.text = before + text;
    draft.chars = offset + countChars(text);
  }

  /** Remove the draft of a step that was aborted. */
  remove(itemId) {
    return this.items.delete(itemId);
  }

  /** Remove the draft of the step that wrote an entry: its text is in the log now. */
  removeWrittenBy({ activity = "" }) {
    const [itemId] = activity.split(" ", 1);
    return this.items.delete(itemId);
  }

  clear() {
    this.items.clear();
  }

  list() {
    return [...this.items.values()];
  }
}

function countChars(text) {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
