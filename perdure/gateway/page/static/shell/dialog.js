// Modal dialogs: one at a time, closed by Escape, its button, or a click beside it.

import { html, nothing, render } from "./html.js";
import { oncePerFrame } from "./frame.js";

/**
 * Show a dialog until it is closed.
 *
 * `view` is called with `{close, draw}` at each drawing; `draw()` draws again. Returns a promise
 * of the value given to `close`.
 */
export function showDialog(title, view, { wide = false } = {}) {
  return new Promise((resolve) => {
    const dialog = document.createElement("dialog");
    if (wide) dialog.className = "wide";
    dialog.setAttribute("aria-label", title);
    let result;
    const close = (value) => {
      result = value;
      dialog.close();
    };
    const drawNow = () => dialog.isConnected && render(frame(title, view({ close, draw }), close), dialog);
    const draw = oncePerFrame(drawNow);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(result);
    });
    dialog.addEventListener("click", (event) => event.target === dialog && close());
    document.body.append(dialog);
    drawNow();
    dialog.showModal();
    const body = dialog.querySelector(".dialog-body");
    (body.querySelector("[autofocus]") ?? body.querySelector("input, textarea, button, a[href]"))?.focus();
  });
}

function frame(title, content, close) {
  return html`<div class="dialog-frame">
    <header>
      <h2>${title}</h2>
      <button type="button" class="plain" aria-label="Close" @click=${() => close()}>✕</button>
    </header>
    <div class="dialog-body">${content ?? nothing}</div>
  </div>`;
}

/** Ask a question with two answers; resolves to whether the answer was the first. */
export async function confirmChoice(title, sentence, label) {
  const answer = await showDialog(
    title,
    ({ close }) => html`<p>${sentence}</p>
      <div class="buttons">
        <button type="button" class="primary" autofocus @click=${() => close(true)}>${label}</button>
        <button type="button" @click=${() => close(false)}>Cancel</button>
      </div>`,
  );
  return answer === true;
}
