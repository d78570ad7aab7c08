// The view of the user's API keys.

import { html, nothing } from "../shell/html.js";
import { confirmChoice, showDialog } from "../shell/dialog.js";
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
export class KeysView {
  constructor(page) {
    this.page = page;
    this.title = "Keys";
    this.items = null;
    this.failure = "";
    this.keys = [{ keys: ["n"], label: "Create a key", run: () => document.getElementById("key-name").focus() }];
    if (page.may("admin")) this.#load();
    else this.failure = "Keys are shown to who has the scope admin.";
  }

  close() {}

  async #load() {
    await this.#run(async () => {
      this.items = (await get("/v1/keys")).items;
    });
  }

  async #run(act) {
    this.failure = "";
    try {
      await act();
    } catch (error) {
      this.failure = error.sentence ?? error.message;
    }
    this.page.draw();
  }

  template() {
    return html`<div class="keys-view">
      <h1>API keys</h1>
      <p class="quiet">Programs send a key as <code>Authorization: Bearer KEY</code>. It can do what you can, within its scopes.</p>
      ${this.failure ? html`<p class="failure" role="alert">${this.failure}</p>` : nothing} ${this.#table()} ${this.#form()}
    </div>`;
  }

  #table() {
    if (this.items === null) return this.page.may("admin") ? html`<p class="quiet">Loading …</p>` : nothing;
    if (!this.items.length) return html`<p class="quiet">There is no key yet.</p>`;
    return html`<div class="scroll-x" tabindex="0" role="region" aria-label="API keys">
      <table class="data">
        <thead>
          <tr><th scope="col">Name</th><th scope="col">Scopes</th><th scope="col">Created</th><th scope="col">Last used</th><th scope="col">Expires</th><th scope="col"><span class="visually-hidden">Revoke</span></th></tr>
        </thead>
        <tbody>
          ${this.items.map((key) => this.#row(key))}
        </tbody>
      </table>
    </div>`;
  }

  #row(key) {
    return html`<tr class=${key.revoked ? "revoked" : ""}>
      <td>${key.name} <span class="quiet mono">${key.id}</span></td>
      <td>${key.scopes.join(", ")}</td>
      <td>${formatAge(key.created)}</td>
      <td>${key.last_used ? formatAge(key.last_used) : "never"}</td>
      <td>${key.expires ? formatMoment(key.expires) : "never"}</td>
      <td>${key.revoked ? "revoked" : html`<button type="button" class="danger" aria-label=${`Revoke ${key.name}`} @click=${() => this.#revoke(key)}>Revoke</button>`}</td>
    </tr>`;
  }

  #form() {
    if (!this.page.may("admin")) return nothing;
    return html`<form class="stacked key-form" @submit=${(event) => this.#create(event)}>
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
    await this.#run(async () => {
      const created = await post("/v1/keys", fields);
      form.reset();
      this.#load();
      await showSecret(created.secret);
    });
  }

  async #revoke(key) {
    const sure = await confirmChoice("Revoke", `Programs with the key ${key.name} are refused from now on.`, "Revoke it");
    if (!sure) return;
    await this.#run(async () => {
      await remove(`/v1/keys/${encodeURIComponent(key.id)}`);
    });
    await this.#load();
  }
}

function showSecret(secret) {
  return showDialog(
    "The new key",
    ({ close }) => html`<p>Copy it now: it is not shown again.</p>
      <p><code class="secret">${secret}</code></p>
      <div class="buttons">
        <button type="button" class="primary" autofocus @click=${() => navigator.clipboard?.writeText(secret).catch(() => {})}>Copy</button>
        <button type="button" @click=${() => close()}>Done</button>
      </div>`,
  );
}
