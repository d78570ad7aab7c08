// The view of the agents that conversations may name, of what all agents take, and of secrets.

import { html, nothing } from "../shell/html.js";
import { DataView, dangerButton, dataTable } from "../shell/data_view.js";
import { confirmChoice } from "../shell/dialog.js";
import { get, put, remove } from "../wire/api.js";
import { showAgent } from "./dialog.js";
import { formatJson, parseObject } from "../shell/json_field.js";
import { Secrets } from "./secrets.js";

/** The agents: list, create, change, delete; the user's settings; the user's secrets. */
export class AgentsView extends DataView {
  constructor(page) {
    super(page, "Agents");
    this.items = null;
    this.settings = null;
    this.saved = "";
    this.secrets = new Secrets(page);
    if (page.may("write")) {
      this.keys = [
        { keys: ["c"], label: "Create an agent", run: () => this.#edit() },
        { keys: ["g"], label: "Change the settings", run: () => document.getElementById("settings").focus() },
        { keys: ["s"], label: "Hand in a secret", run: () => document.getElementById("secret-name").focus() },
      ];
    }
    this.#load();
  }

  async #load() {
    await this.run(async () => {
      const [agents, settings] = await Promise.all([get("/v1/agents"), get("/v1/settings")]);
      this.items = agents.items;
      this.settings = formatJson(settings.agent);
    });
  }

  template() {
    return html`<div class="data-view">
      <h1>Agents</h1>
      <p class="quiet">A new conversation names one of them, and a program does by <code>agent</code>.</p>
      ${this.alert()} ${this.items === null ? html`<p class="quiet">Loading …</p>` : this.#table()}
      ${this.page.may("write") ? html`<div class="buttons"><button type="button" @click=${() => this.#edit()}>Create an agent</button></div>` : nothing}
      ${this.settings === null ? nothing : this.#settings()} ${this.secrets.template()}
    </div>`;
  }

  #table() {
    if (!this.items.length) return html`<p class="quiet">There is no agent yet.</p>`;
    const columns = ["Name", "Model", "Tools", " Change", " Delete"];
    return dataTable("Agents", columns, this.items.map((agent) => this.#row(agent)));
  }

  #row(agent) {
    const may = this.page.may("write");
    const label = agent.own ? "Change" : "Extend";
    const fields = agent.own ? agent.definition : { extends: agent.name };
    const edit = () => this.#edit(agent.own ? agent.name : "", fields);
    return html`<tr>
      <td>
        <b>${agent.name}</b> ${agent.own ? html`<span class="quiet">yours</span>` : nothing}
        ${agent.description ? html`<div class="quiet">${agent.description}</div>` : nothing}
        ${agent.problem ? html`<div class="failure">${agent.problem}</div>` : nothing}
      </td>
      <td>${agent.model ?? html`<span class="quiet">of the start</span>`}</td>
      <td>${agent.tools.join(", ")}</td>
      <td>${may ? html`<button type="button" aria-label=${`${label} ${agent.name}`} @click=${edit}>${label}</button>` : nothing}</td>
      <td>${may && agent.own ? dangerButton("Delete", agent.name, () => this.#delete(agent.name)) : nothing}</td>
    </tr>`;
  }

  async #edit(name = "", fields = {}) {
    if (await showAgent(name, fields)) await this.#load();
  }

  async #delete(name) {
    const sure = await confirmChoice("Delete", `No new conversation has the agent ${name}; those that have it keep it.`, "Delete it");
    if (sure && (await this.run(() => remove(`/v1/agents/${encodeURIComponent(name)}`)))) await this.#load();
  }

  #settings() {
    const may = this.page.may("write");
    return html`<form class="stacked wide" @submit=${(event) => this.#saveSettings(event)}>
      <h2>Settings of all agents</h2>
      <p class="quiet">Fields of an agent that hold for all that you start by a name or by none, as JSON. <code>{}</code> says nothing.</p>
      <label for="settings">Settings</label>
      <textarea id="settings" class="mono" rows="5" ?readonly=${!may} .value=${this.settings} @input=${(event) => (this.settings = event.target.value)}></textarea>
      ${may ? html`<div class="buttons"><button type="submit">Save the settings</button><span role="status">${this.saved}</span></div>` : nothing}
    </form>`;
  }

  async #saveSettings(event) {
    event.preventDefault();
    this.saved = "";
    await this.run(async () => {
      const saved = await put("/v1/settings", { agent: parseObject(this.settings, "The settings are") });
      this.settings = formatJson(saved.agent);
      this.saved = "Saved.";
    });
  }
}
