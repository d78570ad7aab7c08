// The field in which a message is written, with the files that go with it.

import { html, nothing } from "../shell/html.js";

/**
 * Show the field.
 *
 * `attachments` are its files; `submit()` is called on Ctrl+Enter, and on Enter if `enterSends`.
 */
export function editor({ id, label, placeholder, attachments, submit, enterSends = false, rows = 3, disabled = false }) {
  return html`<div
      class="editor"
      @dragover=${allowDrop}
      @dragleave=${(event) => event.currentTarget.classList.remove("dropping")}
      @drop=${(event) => drop(event, attachments)}
    >
      <label class="visually-hidden" for=${id}>${label}</label>
      <textarea
        id=${id}
        rows=${rows}
        placeholder=${placeholder}
        title=${enterSends ? "Enter sends, Shift+Enter breaks the line" : "Ctrl+Enter sends"}
        ?disabled=${disabled}
        @keydown=${(event) => keydown(event, submit, enterSends)}
        @paste=${(event) => paste(event, attachments)}
      ></textarea>
      ${attachments.images.length ? thumbnails(attachments) : nothing}
      ${attachments.problem ? html`<p class="failure" role="alert">${attachments.problem}</p>` : nothing}
    </div>
    <label class="button file-button">
      <span class="wide-only">Attach</span><span class="narrow-only" aria-hidden="true">+</span>
      <input type="file" class="visually-hidden" aria-label="Attach files" multiple ?disabled=${disabled} @change=${(event) => choose(event, id, attachments)} />
    </label>`;
}

function thumbnails(attachments) {
  return html`<ul class="thumbnails">
    ${attachments.images.map(
      ({ name, url }, index) =>
        html`<li>
          <img src=${url} alt=${name} />
          <button type="button" class="plain" aria-label=${`Remove ${name}`} @click=${() => attachments.remove(index)}>✕</button>
        </li>`,
    )}
  </ul>`;
}

function keydown(event, submit, enterSends) {
  if (event.key !== "Enter" || event.isComposing || event.shiftKey) return;
  if (!enterSends && !event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  submit();
}

function allowDrop(event) {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  event.currentTarget.classList.add("dropping");
}

async function drop(event, attachments) {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  event.currentTarget.classList.remove("dropping");
  insert(event.currentTarget.querySelector("textarea"), await attachments.add([...event.dataTransfer.files]));
}

async function paste(event, attachments) {
  if (!event.clipboardData.files.length) return;
  event.preventDefault();
  insert(event.currentTarget, await attachments.add([...event.clipboardData.files]));
}

async function choose(event, id, attachments) {
  const input = event.currentTarget;
  insert(document.getElementById(id), await attachments.add([...input.files]));
  input.value = "";
}

function insert(field, text) {
  if (text) field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
  field.focus();
}
