// Files that are dropped, pasted or chosen: images go with the message, texts into it.

import { Lazy } from "../shell/lazy.js";

const MAX_IMAGES = 20;
const READER = new Lazy(() => import("./read_file.js"));

/** The images of a message that is being written, as data URLs. */
export class Attachments {
  constructor(changed) {
    this.changed = changed;
    this.images = [];
    this.problem = "";
  }

  /** Add files; returns the text to insert for those that are texts. */
  async add(files) {
    this.problem = "";
    let text = "";
    for (const file of files) {
      try {
        const reader = await READER.get();
        if (file.type.startsWith("image/")) await this.#addImage(file, reader);
        else text += await reader.readText(file);
      } catch (error) {
        this.problem = error.message;
      }
    }
    this.changed();
    return text;
  }

  remove(index) {
    this.images.splice(index, 1);
    this.changed();
  }

  clear() {
    this.images = [];
    this.problem = "";
  }

  async #addImage(file, { readImage }) {
    if (this.images.length >= MAX_IMAGES) throw new Error(`A message has at most ${MAX_IMAGES} images.`);
    this.images.push({ name: file.name || "image", url: await readImage(file) });
  }
}
