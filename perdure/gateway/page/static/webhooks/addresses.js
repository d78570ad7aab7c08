// The addresses of conversations and schedules, to which others post.

import { html, nothing } from "../shell/html.js";
import { dangerButton, dataTable } from "../shell/data_view.js";
import { confirmChoice } from "../shell/dialog.js";
import { showSecret } from "../shell/secret_dialog.js";
import { conversationPath } from "../shell/router.js";
import { get, post, remove } from "../wire/api.js";
import { formatAge } from "../log/usage.js";

const PATH = "/v1/addresses";
const COLUMNS = ["Address", "Of", "Posts are", "Created", " Revoke"];

/** The addresses within a view: list, create, revoke. */
export class AddressList {
  constructor(view) {
    this.view = view;
    this.items = null;
  }

  async load() {
    this.items = (await get(PATH)).items;
  }

  template() {
    if (this.items === null) return nothing;
    return html`<h2>Addresses</h2>
      <p class="quiet">What others post to an address of a conversation or a schedule arrives there.</p>
      ${this.items.length ? dataTable("Addresses", COLUMNS, this.items.map((address) => this.#row(address))) : html`<p class="quiet">There is no address yet.</p>`}
      ${this.view.page.may("write") ? this.#form() : nothing}`;
  }

  #row(address) {
    const { id, conversation_id: conversation, schedule, signal, signed, created } = address;
    const what = schedule ? "turns" : signal ? html`the signal <b>${signal}</b>` : "messages";
    return html`<tr>
      <td class="mono">${id}</td>
      <td>${schedule ? html`the schedule <b>${schedule}</b>` : html`<a href=${conversationPath(conversation)}>a conversation</a>`}</td>
      <td>${what}${signed ? ", signed" : nothing}</td>
      <td>${formatAge(created)}</td>
      <td>${this.view.page.may("write") ? dangerButton("Revoke", id, () => this.#revoke(id)) : nothing}</td>
    </tr>`;
  }

  #form() {
    return html`<form class="stacked data-form" @submit=${(event) => this.#create(event)}>
      <h2>Create an address</h2>
      <label for="address-conversation">Conversation <span class="quiet">(its id; empty for a schedule)</span></label>
      <input id="address-conversation" name="conversation" maxlength="36" autocomplete="off" />
      <label for="address-schedule">Schedule <span class="quiet">(its name; empty for a conversation)</span></label>
      <input id="address-schedule" name="schedule" maxlength="64" autocomplete="off" />
      <label for="address-signal">Signal <span class="quiet">(empty for messages)</span></label>
      <input id="address-signal" name="signal" maxlength="64" autocomplete="off" />
      <label class="check"><input type="checkbox" name="signed" /> posts are signed</label>
      <div class="buttons"><button type="submit" class="primary">Create</button></div>
    </form>`;
  }

  async #create(event) {
    event.preventDefault();
    const form = event.target;
    const { conversation, schedule, signal, signed } = form.elements;
    const text = (field) => field.value.trim() || null;
    const fields = { conversation_id: text(conversation), schedule: text(schedule), signal: text(signal), signed: signed.checked };
    await this.view.run(async () => {
      const created = await post(PATH, fields);
      form.reset();
      await this.load();
      await showSecret("The new address", `${location.origin}${created.path}`);
      if (created.secret) await showSecret("The secret of its signatures", created.secret);
    });
  }

  async #revoke(id) {
    const sure = await confirmChoice("Revoke", `Nothing that is posted to ${id} arrives any more.`, "Revoke it");
    if (!sure) return;
    await this.view.run(async () => {
      await remove(`${PATH}/${encodeURIComponent(id)}`);
      this.items = this.items.filter((address) => address.id !== id);
    });
  }
}
