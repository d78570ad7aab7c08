// The view of one discussion, as it goes on.

import { html, nothing, repeat } from "../shell/html.js";
import { Lazy } from "../shell/lazy.js";
import { conversationPath, discussionPath } from "../shell/router.js";
import { loadStyle } from "../shell/style.js";
import { formatCost, formatNumber, formatTokens } from "../log/usage.js";
import { DiscussionModel } from "./model.js";
import { rowTemplate } from "./rows.js";
import { isOver, progressLine, statusPill } from "./status.js";
import { takingPart } from "./taking_part.js";

const MAX_SHOWN = 300; // rows; older ones are shown on demand
const NEAR_END = 120; // pixels from the end at which the page goes on with what is said
const SHARING = new Lazy(() => import("../shell/share_dialog.js"));
const DIALOG = new Lazy(() => import("../shell/dialog.js"));
const FORMATS = [
  ["events", "An event a line, as JSON"],
  ["html", "One page for people"],
  ["results", "The messages of each agent, as a zip archive"],
];

/** A discussion: what was said, by whom, and what came of it. */
export class DiscussionView {
  constructor(page, route) {
    this.page = page;
    this.title = route.id;
    this.model = new DiscussionModel(route.id, route.query.get("owner"), page.draw);
    this.opened = new Set();
    this.selected = null;
    this.most = MAX_SHOWN;
    this.busy = new Set(); // of "steer", "say" and "vote": what waits for its answer
    this.keys = [
      { keys: ["m"], label: "Say something", run: () => document.getElementById("say")?.focus() },
      { keys: ["v"], label: "Vote", run: () => document.getElementById("ballot")?.focus() },
      { keys: ["p"], label: "Pause", run: () => this.#steer("pause") },
      { keys: ["u"], label: "Resume", run: () => this.#steer("resume") },
      { keys: ["C"], label: "Close for good", run: () => this.#close() },
      { keys: ["s"], label: "Share", run: () => this.#share() },
      { keys: ["j", "ArrowDown"], label: "Next event", run: () => this.#move(1) },
      { keys: ["k", "ArrowUp"], label: "Previous event", run: () => this.#move(-1) },
      { keys: ["o"], label: "Unfold or fold the intents", run: () => this.#toggle(this.selected) },
      { keys: ["e"], label: "Unfold or fold all intents", run: () => this.#toggleAll() },
    ];
    loadStyle("styles/discussions.css");
    this.model.open();
  }

  close() {
    this.model.close();
  }

  update(route) {
    return route?.view === "discussion" && route.id === this.model.api.id && (route.query.get("owner") ?? null) === this.model.api.owner;
  }

  get #canWrite() {
    return this.model.info?.access !== "read" && this.page.may("write") && !isOver(this.model.status);
  }

  get #isOwner() {
    return this.model.info?.access === "owner" && this.page.may("write");
  }

  /**
   * Run an act that changes the discussion, one of a kind at a time; return whether it was done.
   *
   * What is said in a pause waits, and must not keep anybody from resuming.
   */
  async #write(kind, act) {
    if (this.busy.has(kind) || !this.#canWrite) return false;
    this.busy.add(kind);
    this.page.draw();
    const done = await this.model.run(async () => {
      await act();
      return true;
    });
    this.busy.delete(kind);
    this.page.draw();
    return done ?? false;
  }

  #steer(act) {
    return this.#write("steer", this.model.api[act]);
  }

  async #close() {
    if (!this.#canWrite) return;
    const { confirmChoice } = await DIALOG.get();
    const sure = await confirmChoice("Close", "The discussion ends for good. Its log stays.", "Close it");
    if (sure) await this.#steer("close");
  }

  async #share() {
    if (!this.#isOwner) return;
    const { id, owner } = this.model.info;
    (await SHARING.get()).showShare(this.model.api, discussionPath(id, owner));
  }

  /** Send what stands in the field; it is emptied once the log has it. */
  async say() {
    const field = document.getElementById("say");
    const text = field.value.trim();
    if (!text) return;
    this.contribution ??= crypto.randomUUID(); // the same one again after a failure
    if (await this.#write("say", () => this.model.api.say(text, this.contribution))) {
      field.value = "";
      this.contribution = null;
    }
  }

  async vote() {
    const [ballot, reason] = ["ballot", "reason"].map((id) => document.getElementById(id));
    this.cast ??= crypto.randomUUID();
    if (await this.#write("vote", () => this.model.api.vote(ballot.value, reason.value.trim(), this.cast))) {
      reason.value = "";
      this.cast = null;
      ballot.focus();
    }
  }

  #move(by) {
    const rows = [...document.querySelectorAll(".discussion-log article")];
    const at = rows.findIndex((row) => Number(row.dataset.seq) === this.selected);
    const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))];
    if (!next) return;
    this.selected = Number(next.dataset.seq);
    this.page.drawNow();
    next.focus();
  }

  #toggle(seq) {
    if (seq !== null) this.#setOpened(seq, !this.opened.has(seq));
  }

  #setOpened(seq, opened) {
    if (opened === this.opened.has(seq)) return;
    if (opened) this.opened.add(seq);
    else this.opened.delete(seq);
    this.page.draw();
  }

  #toggleAll() {
    const all = this.model.rows.filter((row) => row.kind === "intents").map((row) => row.seq);
    this.opened = new Set(this.opened.size ? [] : all);
    this.page.draw();
  }

  /** Draw, and stay at the end where the reader was there. */
  around(paint) {
    const page = document.documentElement;
    const atEnd = page.scrollHeight - page.clientHeight - page.scrollTop < NEAR_END;
    paint();
    if (atEnd && this.model.rows.length) page.scrollTop = page.scrollHeight;
  }

  template() {
    const { info, failure } = this.model;
    if (!info) return html`<div class="centered"><h1>${this.title}</h1><p class=${failure ? "failure" : "quiet"}>${failure || "Loading …"}</p></div>`;
    this.model.refold();
    const { status, connection } = this.model;
    const lost = connection === "waiting" || connection === "offline";
    return html`<div class="list-view discussion-view">
      <div class="title-line">
        <h1>${info.topic}</h1>
        ${statusPill(status)}
        <div class="buttons" role="toolbar" aria-label="Discussion">${this.#buttons(status)}</div>
      </div>
      <p class="quiet">${this.#facts(status)}</p>
      ${lost ? html`<p class="connection" role="status">No connection: what follows is loaded when the gateway answers.</p>` : nothing}
      ${this.#log()}
      ${failure ? html`<p class="failure" role="alert">${failure}</p>` : nothing} ${this.#canWrite ? takingPart(this) : nothing}
    </div>`;
  }

  #facts(status) {
    const { owner, access } = this.model.info;
    const spent = [status.tokens ? `${formatTokens(status.tokens)} tokens` : "", formatCost({ cost: status.cost })];
    return [progressLine(status), ...spent, access === "owner" ? "" : `shared by ${owner} (${access})`].filter(Boolean).join(" · ");
  }

  #buttons({ status }) {
    const button = (label, run) => html`<button type="button" ?disabled=${this.busy.has("steer")} @click=${run}>${label}</button>`;
    const can = this.#canWrite;
    return html`${can && status === "running" ? button("Pause", () => this.#steer("pause")) : nothing}
      ${can && status === "paused" ? button("Resume", () => this.#steer("resume")) : nothing}
      ${can ? button("Close", () => this.#close()) : nothing} ${this.#isOwner ? button("Share", () => this.#share()) : nothing}
      ${button("Download", () => this.#download())}`;
  }

  async #download() {
    const { showDialog } = await DIALOG.get();
    const { api, info } = this.model;
    await showDialog(
      "Download",
      () => html`<ul class="choices">
          ${FORMATS.map(([format, label]) => html`<li><a class="button" href=${api.exportPath(format)} download><b>${format}</b> <span class="quiet">${label}</span></a></li>`)}
        </ul>
        <h3>The agents' conversations</h3>
        <ul class="choices">
          ${Object.entries(info.conversations).map(([name, id]) => html`<li><a class="button" href=${conversationPath(id, api.owner)}>${name}</a></li>`)}
        </ul>`,
    );
  }

  #log() {
    const { rows, colours, status } = this.model;
    const shown = rows.slice(-this.most);
    const hidden = rows.length - shown.length;
    const context = { colours, opened: this.opened, selected: this.selected, setOpened: (seq, opened) => this.#setOpened(seq, opened) };
    return html`<section class="discussion-log" aria-label="What was said">
      ${hidden ? html`<p><button type="button" @click=${() => ((this.most += MAX_SHOWN), this.page.draw())}>${formatNumber(hidden)} earlier events</button></p>` : nothing}
      ${repeat(shown, (row) => row.seq, (row) => rowTemplate(row, context))}
      ${isOver(status) ? nothing : (status.speaking ?? []).map((name) => html`<p class=${`working speaker-${colours.get(name) ?? 0}`}><b class="author">${name}</b> <span class="quiet">is at it …</span></p>`)}
    </section>`;
  }
}
