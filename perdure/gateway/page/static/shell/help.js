// The list of keys.

import { html } from "./html.js";
import { showDialog } from "./dialog.js";
import { nameKey } from "./keyboard.js";

/** Show the keys in force, by group. */
export function showHelp(groups) {
  return showDialog(
    "Keys",
    () =>
      html`${groups
        .filter(([, bindings]) => bindings.length)
        .map(
          ([name, bindings]) =>
            html`<h3>${name}</h3>
              <dl class="keys">
                ${bindings.map(
                  ({ keys, label }) =>
                    html`<div>
                      <dt>${keys.map((key) => html`<kbd>${nameKey(key)}</kbd> `)}</dt>
                      <dd>${label}</dd>
                    </div>`,
                )}
              </dl>`,
        )}`,
    { wide: true },
  );
}
