// The files of the workspace at a slot, and what changed since another one.

import { html, nothing } from "../shell/html.js";
import { showDialog } from "../shell/dialog.js";
import { formatNumber } from "../log/usage.js";
import { send } from "../wire/api.js";
import { splitUnified } from "../text/diff.js";
import { findLanguage } from "../text/highlight.js";
import { codeBlock, foldable } from "./blocks.js";
import { Folds } from "./folds.js";
import { diffBlock } from "./result_blocks.js";

const MAX_FILES = 500; // that are listed at once

/** Show the files at a slot; null stands for the newest one. */
export function showFiles(model, seq) {
  const { api } = model;
  const state = { seq, since: -1, files: null, changes: null, file: null, failure: "", tab: "files", filter: "" };
  return showDialog(
    "Files",
    ({ draw }) => {
      const panel = new FilesPanel(api, state, draw);
      if (state.files === null && !state.failure) panel.load();
      return panel.template();
    },
    { wide: true },
  );
}

class FilesPanel {
  constructor(api, state, draw) {
    Object.assign(this, { api, state, draw });
    state.folds ??= new Folds(draw);
  }

  async run(request) {
    this.state.failure = "";
    try {
      await request();
    } catch (error) {
      this.state.failure = error.sentence ?? error.message;
    }
    this.draw();
  }

  load() {
    const { state } = this;
    state.files = { items: [] };
    return this.run(async () => {
      state.files = await this.api.files(state.seq);
      if (state.tab === "changes") state.changes = await this.api.diff(state.since, state.seq);
    });
  }

  showChanges() {
    const { state } = this;
    state.tab = "changes";
    return this.run(async () => {
      state.changes = await this.api.diff(state.since, state.seq);
    });
  }

  open(path) {
    return this.run(async () => {
      const response = await send("GET", this.api.filePath(path, this.state.seq));
      this.state.file = { path, text: decodeText(await response.arrayBuffer()) };
    });
  }

  template() {
    const { state } = this;
    const choose = (event) => {
      event.preventDefault();
      const { at, since } = event.target.elements;
      state.seq = at.value === "" ? null : Number(at.value);
      state.since = since.value === "" ? -1 : Number(since.value);
      state.file = null;
      this.load();
    };
    return html`<form class="inline" @submit=${choose}>
        <label>At event <input name="at" type="number" min="0" placeholder="newest" .value=${state.seq ?? ""} /></label>
        <label>Changes since event <input name="since" type="number" min="0" placeholder="start" .value=${state.since < 0 ? "" : state.since} /></label>
        <button type="submit">Show</button>
      </form>
      <div class="tabs" role="group" aria-label="What is shown">
        <button type="button" class="chip" aria-pressed=${state.tab === "files"} @click=${() => ((state.tab = "files"), this.draw())}>Files</button>
        <button type="button" class="chip" aria-pressed=${state.tab === "changes"} @click=${() => this.showChanges()}>Changes</button>
      </div>
      ${state.failure ? html`<p class="failure" role="alert">${state.failure}</p>` : nothing}
      ${state.tab === "files" ? this.#files() : this.#changes()}`;
  }

  #files() {
    const { state } = this;
    const { items = [], fault, seq } = state.files ?? {};
    if (state.file) return this.#file();
    const shown = items.filter((file) => file.path.includes(state.filter)).slice(0, MAX_FILES);
    const filter = (event) => {
      state.filter = event.target.value;
      this.draw();
    };
    return html`${fault ? html`<p class="failure">${fault}</p>` : nothing}
      ${items.length ? html`<input type="search" aria-label="Find a file" placeholder="Find a file" @input=${filter} />` : nothing}
      ${items.length
        ? html`<p class="quiet">${formatNumber(items.length)} files${seq === null || seq === undefined ? "" : `, kept with event ${seq}`}.</p>`
        : html`<p class="quiet">The store has no files up to this event.</p>`}
      <ul class="files">
        ${shown.map(
          (file) => html`<li>
            <button type="button" class="plain link" @click=${() => this.open(file.path)}>${file.path}</button>
            <span class="quiet">${formatNumber(file.size)} B</span>
          </li>`,
        )}
      </ul>`;
  }

  #file() {
    const { path, text } = this.state.file;
    const language = findLanguage(path.split(".").at(-1));
    const address = this.api.filePath(path, this.state.seq);
    return html`<p class="buttons">
        <button type="button" @click=${() => ((this.state.file = null), this.draw())}>← All files</button>
        <code>${path}</code> <a href=${address} download>Download</a>
      </p>
      ${text === null ? html`<p class="quiet">This file is no text.</p>` : foldable(text, `0 ${path}`, this.state.folds, (part) => codeBlock(part, language))}`;
  }

  #changes() {
    const { changes } = this.state;
    if (!changes) return html`<p class="quiet">Loading …</p>`;
    const counts = new Map(changes.items.map((change) => [change.path, change]));
    return html`${(changes.faults ?? []).map((fault) => html`<p class="failure">${fault}</p>`)}
      ${changes.items.length ? nothing : html`<p class="quiet">No file is changed.</p>`}
      ${splitUnified(changes.diff).map(
        ({ path, lines }) =>
          html`<details class="file-diff" open>
            <summary><code>${path}</code> ${changeCounts(counts.get(path))}</summary>
            ${diffBlock(lines)}
          </details>`,
      )}`;
  }
}

/** Decode a file; null if it is no text. */
function decodeText(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

function changeCounts(change) {
  if (!change) return nothing;
  return html`<span class="quiet">${change.kind}</span> ${change.added ? html`<span class="added">+${change.added}</span>` : nothing}
    ${change.removed ? html`<span class="removed">−${change.removed}</span>` : nothing}`;
}
