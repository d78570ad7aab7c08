// The view of the user's API keys.

import { html, nothing } from "../shell/html.js";
import { DataView, dangerButton, dataTable } from "../shell/data_view.js";
import { confirmChoice } from "../shell/dialog.js";
import { showSecret } from "../shell/secret_dialog.js";
import { get, post, remove } from "../wire/api.js";
import { formatAge, formatMoment } from "../log/usage.js";

const LIFETIMES = [
  ["30 days", 30],
  ["90 days", 90],
  ["1 year", 365],
  ["never", null],
];
const SCOPES = ["read", "write", "admin"];

/** The keys: list, create, revoke. */
export class KeysView extends DataView {
  constructor(page) {
    super(page, "Keys");
    this.items = null;
    this.keys = [{ keys: ["n"], label: "Create a key", run: () => document.getElementById("key-name").focus() }];
    if (page.may("admin")) this.#load();
    else this.failure = "Keys are shown to who has the scope admin.";
  }

  async #load() {
    await this.run(async () => {
      this.items = (await get("/v1/keys")).items;
    });
  }

  template() {
    return html`<div class="data-view">
      <h1>API keys</h1>
      <p class="quiet">Programs send a key as <code>Authorization: Bearer KEY</code>. It can do what you can, within its scopes.</p>
      ${this.alert()} ${this.#table()} ${this.#form()}
    </div>`;
  }

  #table() {
    if (this.items === null) return this.page.may("admin") ? html`<p class="quiet">Loading …</p>` : nothing;
    if (!this.items.length) return html`<p class="quiet">There is no key yet.</p>`;
    const columns = ["Name", "Scopes", "Created", "Last used", "Expires", " Revoke"];
    return dataTable("API keys", columns, this.items.map((key) => this.#row(key)));
  }

  #row(key) {
    return html`<tr class=${key.revoked ? "revoked" : ""}>
      <td>${key.name} <span class="quiet mono">${key.id}</span></td>
      <td>${key.scopes.join(", ")}</td>
      <td>${formatAge(key.created)}</td>
      <td>${key.last_used ? formatAge(key.last_used) : "never"}</td>
      <td>${key.expires ? formatMoment(key.expires) : "never"}</td>
      <td>${key.revoked ? "revoked" : dangerButton("Revoke", key.name, () => this.#revoke(key))}</td>
    </tr>`;
  }

  #form() {
    if (!this.page.may("admin")) return nothing;
    return html`<form class="stacked data-form" @submit=${(event) => this.#create(event)}>
      <h2>Create a key</h2>
      <label for="key-name">Name</label>
      <input id="key-name" name="name" maxlength="128" required autocomplete="off" />
      <fieldset>
        <legend>Scopes</legend>
        ${SCOPES.map((scope) => html`<label class="check"><input type="checkbox" name="scopes" value=${scope} ?checked=${scope !== "admin"} ?disabled=${!this.page.may(scope)} /> ${scope}</label>`)}
      </fieldset>
      <label for="key-expires">Expires after</label>
      <select id="key-expires" name="expires">${LIFETIMES.map(([label, days]) => html`<option value=${days ?? ""}>${label}</option>`)}</select>
      <div class="buttons"><button type="submit" class="primary">Create</button></div>
    </form>`;
  }

  async #create(event) {
    event.preventDefault();
    const { name, expires } = event.target.elements;
    const scopes = [...event.target.querySelectorAll("[name=scopes]:checked")].map((box) => box.value);
    const fields = { name: name.value.trim(), scopes, expires_in: expires.value ? Number(expires.value) * 86_400 : null };
    const form = event.target;
    await this.run(async () => {
      const created = await post("/v1/keys", fields);
      form.reset();
      this.#load();
      await showSecret("The new key", created.secret);
    });
  }

  async #revoke(key) {
    const sure = await confirmChoice("Revoke", `Programs with the key ${key.name} are refused from now on.`, "Revoke it");
    if (sure && (await this.run(() => remove(`/v1/keys/${encodeURIComponent(key.id)}`)))) await this.#load();
  }
}
