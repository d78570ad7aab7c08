// The dialog in which a user writes an agent of their own.

import { html, nothing } from "../shell/html.js";
import { showDialog } from "../shell/dialog.js";
import { put } from "../wire/api.js";
import { formatJson, parseObject } from "../shell/json_field.js";

const EXAMPLE = `{
  "extends": "default",
  "description": "reviews changes",
  "tools": ["terminal", "finish"]
}`;

/** Show an agent's fields until they are saved or the dialog is closed; resolves to whether they were saved. */
export async function showAgent(name, fields) {
  const isNew = name === "";
  let failure = "";
  const save = async (event, { close, draw }) => {
    event.preventDefault();
    const { agent, definition } = event.target.elements;
    failure = "";
    try {
      await put(`/v1/agents/${encodeURIComponent(agent.value.trim())}`, parseObject(definition.value, "The agent is"));
      close(true);
    } catch (error) {
      failure = error.sentence ?? error.message;
      draw();
    }
  };
  const saved = await showDialog(
    isNew ? "Create an agent" : `Agent ${name}`,
    (dialog) => html`<form class="stacked" @submit=${(event) => save(event, dialog)}>
      <label for="agent-name">Name</label>
      <input id="agent-name" name="agent" value=${name} ?readonly=${!isNew} ?autofocus=${isNew} required pattern="[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}" title="A name of letters, digits, and . _ -" autocomplete="off" />
      <label for="agent-definition">Fields, as JSON</label>
      <textarea id="agent-definition" name="definition" class="mono" rows="14" ?autofocus=${!isNew} placeholder=${EXAMPLE} .value=${Object.keys(fields).length ? formatJson(fields) : ""}></textarea>
      ${failure ? html`<p class="failure" role="alert">${failure}</p>` : nothing}
      <div class="buttons">
        <button type="submit" class="primary">Save</button>
        <button type="button" @click=${() => dialog.close(false)}>Cancel</button>
      </div>
    </form>`,
    { wide: true },
  );
  return saved === true;
}
