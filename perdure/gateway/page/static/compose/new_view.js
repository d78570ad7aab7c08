// The view in which a conversation is started.

import { html, nothing } from "../shell/html.js";
import { parseObject } from "../shell/json_field.js";
import { conversationPath } from "../shell/router.js";
import { get } from "../wire/api.js";
import { startConversation } from "../wire/conversations.js";
import { Attachments } from "./attachments.js";
import { editor } from "./editor.js";

const WHOLE = " whole"; // no agent has a name that begins with a space

/** A form with agent, model and task. */
export class NewView {
  constructor(page) {
    this.page = page;
    this.title = "New conversation";
    this.attachments = new Attachments(page.draw);
    this.agents = [];
    this.models = { items: [], default: null };
    this.agent = "";
    this.failure = "";
    this.busy = false;
    this.requestId = crypto.randomUUID();
    this.keys = [{ keys: ["m"], label: "Write the task", run: () => document.getElementById("task").focus() }];
    this.#load();
  }

  close() {}

  drawn() {
    if (this.focused) return;
    this.focused = true;
    document.getElementById("task").focus();
  }

  async #load() {
    try {
      const [agents, models] = await Promise.all([get("/v1/agents"), get("/v1/models")]);
      this.agents = agents.items;
      this.models = models;
      this.agent = this.agents.some((item) => item.name === "default") ? "default" : (this.agents[0]?.name ?? WHOLE);
    } catch (error) {
      this.failure = error.sentence ?? error.message;
    }
    this.page.draw();
  }

  template() {
    const start = () => this.start();
    return html`<form class="new-view stacked" @submit=${(event) => (event.preventDefault(), start())}>
      <h1>New conversation</h1>
      <div class="stacked">
        ${editor({ id: "task", label: "Task", placeholder: "What is to be done? Drop images or texts here. (Ctrl+Enter starts)", attachments: this.attachments, submit: start, rows: 8 })}
      </div>
      <div class="pair">
        <div class="stacked">
          <label for="agent">Agent</label>
          <select id="agent" @change=${(event) => ((this.agent = event.target.value), this.page.draw())}>
            ${this.agents.map((item) => html`<option value=${item.name} ?selected=${item.name === this.agent}>${item.name}</option>`)}
            <option value=${WHOLE} ?selected=${this.agent === WHOLE}>An agent as JSON …</option>
          </select>
        </div>
        <div class="stacked">
          <label for="model">Model</label>
          <input id="model" list="models" placeholder=${this.models.default ?? "the agent's own"} autocomplete="off" />
          <datalist id="models">${this.models.items.map((name) => html`<option value=${name}></option>`)}</datalist>
        </div>
      </div>
      ${this.agent === WHOLE
        ? html`<label for="agent-json">Agent as JSON</label><textarea id="agent-json" class="mono" rows="8" placeholder='{"model": {"name": "…"}, "tools": ["terminal", "finish"]}'></textarea>`
        : nothing}
      ${this.failure ? html`<p class="failure" role="alert">${this.failure}</p>` : nothing}
      <div class="buttons"><button type="submit" class="primary" ?disabled=${this.busy}>${this.busy ? "Starting …" : "Start"}</button></div>
    </form>`;
  }

  async start() {
    const text = document.getElementById("task").value.trim();
    const images = this.attachments.images.map((image) => image.url);
    if (this.busy || (!text && !images.length)) return;
    this.busy = true;
    this.failure = "";
    this.page.draw();
    try {
      const started = await startConversation(this.#fields(text, images));
      this.page.go(conversationPath(started.id));
    } catch (error) {
      this.failure = error.sentence ?? error.message;
    }
    this.busy = false;
    this.page.draw();
  }

  /** Build the request; the same ids again start nothing twice. */
  #fields(text, images) {
    const fields = { text, images, conversation_id: this.requestId, message_id: this.requestId };
    const model = document.getElementById("model").value.trim();
    if (model) fields.model = model;
    if (this.agent === WHOLE) fields.agent = parseObject(document.getElementById("agent-json").value, "The agent is");
    else if (this.agent) fields.agent = this.agent;
    return fields;
  }
}
