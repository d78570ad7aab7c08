// The user's secrets: their names are shown, their values are only handed in.

import { html, nothing } from "../shell/html.js";
import { DataView, dangerButton, dataTable } from "../shell/data_view.js";
import { confirmChoice } from "../shell/dialog.js";
import { get, put, remove } from "../wire/api.js";
import { formatAge } from "../log/usage.js";

/** The part of a view that lists, hands in and removes secrets. */
export class Secrets extends DataView {
  constructor(page) {
    super(page, "Secrets");
    this.items = null;
    this.#load();
  }

  async #load() {
    await this.run(async () => {
      this.items = (await get("/v1/secrets")).items;
    });
  }

  template() {
    return html`<section class="stacked" aria-labelledby="secrets-heading">
      <h2 id="secrets-heading">Secrets</h2>
      <p class="quiet">A command of an agent that names one has its value; nobody is shown it again.</p>
      ${this.alert()} ${this.#table()} ${this.page.may("write") ? this.#form() : nothing}
    </section>`;
  }

  #table() {
    if (this.items === null) return nothing;
    if (!this.items.length) return html`<p class="quiet">There is no secret yet.</p>`;
    return dataTable("Secrets", ["Name", "Description", "Changed", " Remove"], this.items.map((secret) => this.#row(secret)));
  }

  #row({ name, description, updated }) {
    return html`<tr>
      <td><code>${name}</code></td>
      <td>${description}</td>
      <td>${formatAge(updated)}</td>
      <td>${this.page.may("write") ? dangerButton("Remove", name, () => this.#remove(name)) : nothing}</td>
    </tr>`;
  }

  #form() {
    return html`<form class="stacked data-form" @submit=${(event) => this.#put(event)}>
      <label for="secret-name">Name</label>
      <input id="secret-name" name="secret" required pattern="[A-Za-z_][A-Za-z0-9_]{0,127}" title="A name of letters, digits and _, as that of a variable" autocomplete="off" />
      <label for="secret-value">Value</label>
      <input id="secret-value" name="value" type="password" required minlength="8" autocomplete="new-password" />
      <label for="secret-description">What it is for</label>
      <input id="secret-description" name="description" maxlength="500" autocomplete="off" />
      <div class="buttons"><button type="submit">Hand it in</button></div>
    </form>`;
  }

  async #put(event) {
    event.preventDefault();
    const form = event.target;
    const { secret, value, description } = form.elements;
    const path = `/v1/secrets/${encodeURIComponent(secret.value.trim())}`;
    if (!(await this.run(() => put(path, { value: value.value, description: description.value.trim() })))) return;
    form.reset();
    await this.#load();
  }

  async #remove(name) {
    const sure = await confirmChoice("Remove", `No later command has the secret ${name}.`, "Remove it");
    if (sure && (await this.run(() => remove(`/v1/secrets/${encodeURIComponent(name)}`)))) await this.#load();
  }
}
