// Blocks of what tools return: terminal output, diffs, tables.

import { html, nothing } from "../shell/html.js";
import { formatNumber } from "../log/usage.js";
import { parseAnsi } from "../text/ansi.js";
import { cellText, parseJson, tableOf } from "../text/json_value.js";
import { codeBlock } from "./blocks.js";

/** Show terminal output with its colours. */
export function terminalBlock(text) {
  const parts = parseAnsi(text);
  return html`<pre class="terminal" tabindex="0">${parts.map(({ text: part, classes }) =>
    classes ? html`<span class=${classes}>${part}</span>` : part,
  )}</pre>`;
}

const SIGN_CLASSES = { "+": "added", "-": "removed", "@": "heading", "…": "gap", " ": "" };

/** Show lines with signs as a diff. */
export function diffBlock(lines) {
  if (!lines.length) return html`<p class="quiet">No line differs.</p>`;
  return html`<pre class="diff" tabindex="0">${lines.map(
    ({ sign, text }) =>
      html`<span class=${SIGN_CLASSES[sign]}><span class="sign" aria-hidden="true">${sign === "@" ? "" : sign}</span>${
        sign === "+" || sign === "-"
          ? html`<span class="visually-hidden">${sign === "+" ? "added: " : "removed: "}</span>`
          : nothing
      }${text}${"\n"}</span>`,
  )}</pre>`;
}

/** Show the table of a JSON value. */
export function tableBlock({ columns, rows, left }) {
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table">
      <table class="data">
        <thead>
          <tr>
            ${columns.map((column) => html`<th scope="col">${column}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map((row) => html`<tr>${row.map((value) => html`<td>${cellText(value)}</td>`)}</tr>`)}
        </tbody>
      </table>
    </div>
    ${left ? html`<p class="quiet">${formatNumber(left)} more rows: see the raw JSON.</p>` : nothing}`;
}

/** Show a text as a table where it is JSON that has one, else as `show` does. */
export function jsonOr(text, show) {
  const value = parseJson(text);
  const table = value && tableOf(value);
  if (table) return tableBlock(table);
  return value ? codeBlock(JSON.stringify(value, null, 2), "json") : show(text);
}
