// The dialog that shows a secret, once.

import { html } from "./html.js";
import { showDialog } from "./dialog.js";

/** Show a secret that nothing shows again, with a button that copies it. */
export function showSecret(title, secret) {
  return showDialog(
    title,
    ({ close }) => html`<p>Copy it now: it is not shown again.</p>
      <p><code class="secret">${secret}</code></p>
      <div class="buttons">
        <button type="button" class="primary" autofocus @click=${() => navigator.clipboard?.writeText(secret).catch(() => {})}>Copy</button>
        <button type="button" @click=${() => close()}>Done</button>
      </div>`,
  );
}
