// The base of the views that show a table of the gateway's and change it.

import { html, nothing } from "./html.js";

/** A view with data of the gateway; `failure` says why the last request failed. */
export class DataView {
  constructor(page, title) {
    this.page = page;
    this.title = title;
    this.failure = "";
    this.keys = [];
  }

  close() {}

  /** Await `act`, say why it failed if it did, and draw. Returns whether it succeeded. */
  async run(act) {
    this.failure = "";
    try {
      await act();
    } catch (error) {
      this.failure = error.sentence ?? error.message;
    }
    this.page.draw();
    return !this.failure;
  }

  /** Return the sentence of the failure, if there is one. */
  alert() {
    return this.failure ? html`<p class="failure" role="alert">${this.failure}</p>` : nothing;
  }
}

/**
 * Return a table that scrolls in its width.
 *
 * `columns` are its headings; one that begins with a space is there for screen readers alone.
 */
export function dataTable(label, columns, rows) {
  const heading = (name) => html`<th scope="col">${name.startsWith(" ") ? html`<span class="visually-hidden">${name.trim()}</span>` : name}</th>`;
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label=${label}>
    <table class="data">
      <thead><tr>${columns.map(heading)}</tr></thead>
      <tbody>${rows}</tbody>
    </table>
  </div>`;
}

/** Return a button that removes something, with a name for screen readers. */
export function dangerButton(label, name, run) {
  return html`<button type="button" class="danger" aria-label=${`${label} ${name}`} @click=${run}>${label}</button>`;
}
