// The view of the user's webhooks, and of the addresses to which others post.

import { html, nothing } from "../shell/html.js";
import { DataView, dangerButton, dataTable } from "../shell/data_view.js";
import { confirmChoice } from "../shell/dialog.js";
import { showSecret } from "../shell/secret_dialog.js";
import { conversationPath } from "../shell/router.js";
import { get, post, remove } from "../wire/api.js";
import { formatAge } from "../log/usage.js";
import { AddressList } from "./addresses.js";

const PATH = "/v1/webhooks";
const EVENTS = [
  ["turn_end", "the end of a turn"],
  ["question", "a question"],
  ["approval", "actions that wait for an approval"],
  ["error", "an error"],
];

/** The webhooks: list, create, test, rotate, delete, and the last deliveries of one. */
export class WebhooksView extends DataView {
  constructor(page) {
    super(page, "Webhooks");
    this.items = null;
    this.shown = null; // a webhook with its deliveries
    this.addresses = new AddressList(this);
    if (page.may("write")) this.keys = [{ keys: ["c"], label: "Create a webhook", run: () => document.getElementById("webhook-url").focus() }];
    this.#load();
  }

  async #load() {
    await this.run(async () => {
      this.items = (await get(PATH)).items;
      await this.addresses.load();
    });
  }

  template() {
    return html`<div class="data-view">
      <h1>Webhooks</h1>
      <p class="quiet">Each posts what happens in your conversations to another server, signed as Standard Webhooks are.</p>
      ${this.alert()} ${this.items === null ? html`<p class="quiet">Loading …</p>` : this.#table()} ${this.shown ? this.#deliveries(this.shown) : nothing}
      ${this.page.may("write") ? this.#form() : nothing} ${this.addresses.template()}
    </div>`;
  }

  #table() {
    if (!this.items.length) return html`<p class="quiet">There is no webhook yet.</p>`;
    const columns = ["Address", "Events", "Of", "Created", " Deliveries", " Test", " New secret", " Delete"];
    return dataTable("Webhooks", columns, this.items.map((webhook) => this.#row(webhook)));
  }

  #row(webhook) {
    const { id, url, events, conversation_id: conversation, created, ended } = webhook;
    const may = this.page.may("write");
    const button = (label, run) => html`<button type="button" aria-label=${`${label} ${url}`} @click=${run}>${label}</button>`;
    return html`<tr>
      <td><b>${url}</b> <span class="quiet mono">${id}</span>${ended ? html`<div class="failure">ended: ${ended}</div>` : nothing}</td>
      <td>${events.join(", ")}</td>
      <td>${conversation ? html`<a href=${conversationPath(conversation)}>a conversation</a>` : "all conversations"}</td>
      <td>${formatAge(created)}</td>
      <td>${button("Deliveries", () => this.#show(id))}</td>
      <td>${may && !ended ? button("Test", () => this.#test(id)) : nothing}</td>
      <td>${may ? button("New secret", () => this.#rotate(webhook)) : nothing}</td>
      <td>${may ? dangerButton("Delete", url, () => this.#delete(webhook)) : nothing}</td>
    </tr>`;
  }

  #deliveries({ url, deliveries }) {
    const row = (it) => html`<tr>
      <td>${it.event}</td>
      <td>${it.conversation_id ? html`<a href=${conversationPath(it.conversation_id)}>its conversation</a>` : nothing}</td>
      <td>${it.status}</td>
      <td>${formatAge(it.started)}</td>
    </tr>`;
    return html`<h2>Last deliveries to ${url}</h2>
      ${deliveries.length ? dataTable("Last deliveries", ["Event", "Of", "Status", "Since"], deliveries.map(row)) : html`<p class="quiet">Nothing was posted lately.</p>`}`;
  }

  #form() {
    return html`<form class="stacked data-form" @submit=${(event) => this.#create(event)}>
      <h2>Create a webhook</h2>
      <label for="webhook-url">Address</label>
      <input id="webhook-url" name="url" type="url" required maxlength="2000" placeholder="https://…" autocomplete="off" />
      <fieldset>
        <legend>What is posted</legend>
        ${EVENTS.map(([name, label]) => html`<label class="check"><input type="checkbox" name="events" value=${name} checked /> ${label}</label>`)}
      </fieldset>
      <label for="webhook-conversation">Conversation <span class="quiet">(its id; empty for all)</span></label>
      <input id="webhook-conversation" name="conversation" maxlength="36" autocomplete="off" />
      <div class="buttons"><button type="submit" class="primary">Create</button></div>
    </form>`;
  }

  async #create(event) {
    event.preventDefault();
    const form = event.target;
    const { url, conversation } = form.elements;
    const events = [...form.querySelectorAll("[name=events]:checked")].map((box) => box.value);
    const fields = { url: url.value.trim(), events, conversation_id: conversation.value.trim() || null };
    await this.run(async () => {
      const created = await post(PATH, fields);
      form.reset();
      this.#load();
      await showSecret("The secret of the new webhook", created.secret);
    });
  }

  async #show(id) {
    await this.run(async () => {
      this.shown = await get(`${PATH}/${encodeURIComponent(id)}`);
    });
  }

  async #test(id) {
    if (await this.run(() => post(`${PATH}/${encodeURIComponent(id)}/test`))) await this.#show(id);
  }

  async #rotate({ id, url }) {
    const sure = await confirmChoice("New secret", `Posts to ${url} are signed with a new secret, and for a day with that of before as well.`, "Make one");
    if (!sure) return;
    await this.run(async () => showSecret("The new secret", (await post(`${PATH}/${encodeURIComponent(id)}/rotate`)).secret));
  }

  async #delete({ id, url }) {
    const sure = await confirmChoice("Delete", `Nothing is posted to ${url} any more.`, "Delete it");
    if (!sure) return;
    await this.run(async () => {
      await remove(`${PATH}/${encodeURIComponent(id)}`);
      this.items = this.items.filter((webhook) => webhook.id !== id);
      if (this.shown?.id === id) this.shown = null;
    });
  }
}
