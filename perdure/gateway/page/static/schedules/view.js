// The view of the user's schedules.

import { html, nothing } from "../shell/html.js";
import { DataView, dangerButton, dataTable } from "../shell/data_view.js";
import { confirmChoice } from "../shell/dialog.js";
import { conversationPath } from "../shell/router.js";
import { get, post, remove } from "../wire/api.js";
import { formatAge, formatMoment, formatSeconds } from "../log/usage.js";

const PATH = "/v1/schedules";
const OVERLAPS = [
  ["skip", "leave the time out"],
  ["buffer_one", "begin afterwards, once"],
  ["buffer_all", "begin afterwards, each"],
  ["cancel_other", "interrupt the turn"],
  ["allow_all", "begin beside it"],
];
const SHOWN_CONVERSATIONS = 3;

/** The schedules: list, create, pause, resume, begin now, delete. */
export class SchedulesView extends DataView {
  constructor(page) {
    super(page, "Schedules");
    this.items = null;
    this.agents = [];
    if (page.may("write")) this.keys = [{ keys: ["c"], label: "Create a schedule", run: () => document.getElementById("schedule-name").focus() }];
    this.#load();
  }

  async #load() {
    await this.run(async () => {
      const [schedules, agents] = await Promise.all([get(PATH), get("/v1/agents")]);
      this.items = schedules.items;
      this.agents = agents.items;
    });
  }

  /** Send a request that returns a schedule, and show that: Temporal's list is a little behind. */
  async #act(name, act) {
    const body = act === "trigger" ? undefined : {};
    await this.run(async () => this.#put(await post(`${PATH}/${encodeURIComponent(name)}/${act}`, body)));
  }

  #put(schedule) {
    const others = this.items.filter(({ name }) => name !== schedule.name);
    this.items = [...others, schedule].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  template() {
    return html`<div class="data-view">
      <h1>Schedules</h1>
      <p class="quiet">At each time of a schedule an agent begins its task, or a message is sent to a conversation.</p>
      ${this.alert()} ${this.items === null ? html`<p class="quiet">Loading …</p>` : this.#table()} ${this.page.may("write") ? this.#form() : nothing}
    </div>`;
  }

  #table() {
    if (!this.items.length) return html`<p class="quiet">There is no schedule yet.</p>`;
    const columns = ["Name", "Times", "Next", "Lately", " Pause", " Begin now", " Delete"];
    return dataTable("Schedules", columns, this.items.map((schedule) => this.#row(schedule)));
  }

  #row(schedule) {
    const { name, definition, agent, paused, note, next_times: times, recent_firings: firings } = schedule;
    const may = this.page.may("write");
    const act = (label, path) => html`<button type="button" aria-label=${`${label} ${name}`} @click=${() => this.#act(name, path)}>${label}</button>`;
    return html`<tr>
      <td>
        <b>${name}</b>
        <div class="quiet">${definition.text.slice(0, 200)}</div>
        <div class="quiet">${definition.conversation_id ? html`to <a href=${conversationPath(definition.conversation_id)}>a conversation</a>` : agent}</div>
      </td>
      <td>${definition.cron.map((cron) => html`<code>${cron}</code><br />`)}${definition.every ? html`every ${formatSeconds(definition.every)}<br />` : nothing}<span class="quiet">${definition.time_zone}</span></td>
      <td>${paused ? html`paused${note ? html`<div class="quiet">${note}</div>` : nothing}` : formatMoment(times[0])}</td>
      <td>${firings.slice(-SHOWN_CONVERSATIONS).reverse().map((firing) => html`<a href=${conversationPath(firing.conversation_id)}>${formatAge(firing.started_at)}</a><br />`)}</td>
      <td>${may ? (paused ? act("Resume", "resume") : act("Pause", "pause")) : nothing}</td>
      <td>${may ? act("Begin now", "trigger") : nothing}</td>
      <td>${may ? dangerButton("Delete", name, () => this.#delete(name)) : nothing}</td>
    </tr>`;
  }

  #form() {
    return html`<form class="stacked data-form" @submit=${(event) => this.#create(event)}>
      <h2>Create a schedule</h2>
      <label for="schedule-name">Name</label>
      <input id="schedule-name" name="schedule" required maxlength="64" autocomplete="off" />
      <label for="schedule-text">Task</label>
      <textarea id="schedule-text" name="text" rows="3" required></textarea>
      <label for="schedule-cron">Times, as in crontab <span class="quiet">(minute hour day month weekday)</span></label>
      <input id="schedule-cron" name="cron" required placeholder="0 8 * * 1-5" autocomplete="off" />
      <label for="schedule-zone">Time zone</label>
      <input id="schedule-zone" name="zone" required value=${Intl.DateTimeFormat().resolvedOptions().timeZone} autocomplete="off" />
      <label for="schedule-agent">Agent</label>
      <select id="schedule-agent" name="agent">${this.agents.map(({ name }) => html`<option value=${name} ?selected=${name === "default"}>${name}</option>`)}</select>
      <label for="schedule-overlap">While the turn before goes on</label>
      <select id="schedule-overlap" name="overlap">${OVERLAPS.map(([value, label]) => html`<option value=${value}>${label}</option>`)}</select>
      <div class="buttons"><button type="submit" class="primary">Create</button></div>
    </form>`;
  }

  async #create(event) {
    event.preventDefault();
    const form = event.target;
    const { schedule, text, cron, zone, agent, overlap } = form.elements;
    const fields = { text: text.value, cron: [cron.value.trim()], time_zone: zone.value.trim(), overlap: overlap.value };
    if (agent.value) fields.agent = agent.value;
    const path = `${PATH}/${encodeURIComponent(schedule.value.trim())}`;
    if (await this.run(async () => this.#put(await post(path, fields)))) form.reset();
  }

  async #delete(name) {
    const sure = await confirmChoice("Delete", `The schedule ${name} begins nothing more; its conversations go on.`, "Delete it");
    if (!sure) return;
    await this.run(async () => {
      await remove(`${PATH}/${encodeURIComponent(name)}`);
      this.items = this.items.filter((schedule) => schedule.name !== name);
    });
  }
}
