// The view of one conversation.

import { html, nothing } from "../shell/html.js";
import { announce } from "../shell/announcer.js";
import { preload } from "../shell/lazy.js";
import { conversationPath, parseSeqHash } from "../shell/router.js";
import { Attachments } from "../compose/attachments.js";
import { editor } from "../compose/editor.js";
import { phaseOf, progressOf, statusWord, waitsFor } from "../log/status.js";
import { RowWindow } from "../log/window.js";
import { Folds } from "./folds.js";
import { conversationHeader } from "./header.js";
import { conversationKeys } from "./keys.js";
import { filters, logSection, problems } from "./log_section.js";
import { ConversationModel } from "./model.js";
import { ASKS, CALL_BODY, DIALOGS, EVENT_ACTIONS, FILES, TIMELINE } from "./parts.js";
import { Scroller } from "./scroller.js";
import { Steering } from "./steering.js";
import { waitingBanner } from "./waiting.js";

const HIDDEN_AT_FIRST = ["system"];

/** Return the acts on the events of a view, whose module is loaded after it. */
function lateActions(view) {
  const act = (name) => async (row) => new (await EVENT_ACTIONS.get()).EventActions(view)[name](row);
  return Object.fromEntries(["openMenu", "raw", "link", "fork", "retry"].map((name) => [name, act(name)]));
}

/** A conversation: its rows, its head, and the field for messages. */
export class ConversationView {
  constructor(page, route) {
    this.page = page;
    this.draw = page.draw;
    const { id, query } = route;
    this.model = new ConversationModel(id, query.get("owner"), this.draw);
    this.window = new RowWindow();
    this.folds = new Folds(this.draw);
    this.opened = new Set();
    this.hidden = new Set(HIDDEN_AT_FIRST);
    this.selected = null;
    this.attachments = new Attachments(this.draw);
    this.steering = new Steering(this);
    this.events = lateActions(this);
    this.scroller = new Scroller({
      onNearTop: () => this.#older(),
      onNearBottom: () => this.#newer(),
      onMoved: (atBottom) => this.#moved(atBottom),
    });
    this.keys = conversationKeys(this);
    this.#open(parseSeqHash(route.hash));
    preload(ASKS, CALL_BODY, DIALOGS, EVENT_ACTIONS, FILES, TIMELINE);
  }

  async #open(seq) {
    if (seq !== null) this.scroller.following = false;
    await this.model.open(seq);
    if (seq !== null) this.show(seq);
  }

  get title() {
    const { status, rows } = this.model;
    if (status?.title) return status.title;
    const first = rows.find((row) => row.kind === "message" && row.author === "user");
    return first?.text.trim().split("\n", 1)[0].slice(0, 120) || "Conversation";
  }

  get canWrite() {
    return this.model.info?.access !== "read" && this.page.may("write");
  }

  /** Whoever reads a conversation may fork it: the fork is one's own. */
  get canFork() {
    return this.page.may("write");
  }

  get isOwner() {
    return this.model.info?.access === "owner" && this.page.may("write");
  }

  close() {
    this.model.close();
    this.scroller.attach(null);
  }

  /** Follow a change of the hash within the same conversation; returns whether it is the same. */
  update(route) {
    const same = route.view === "conversation" && route.id === this.model.api.id && (route.query.get("owner") ?? null) === this.model.api.owner;
    if (!same) return false;
    const seq = parseSeqHash(route.hash);
    if (seq !== null) this.show(seq);
    return true;
  }

  /** The rows that the filter lets through. */
  get rows() {
    const { rows } = this.model;
    return this.hidden.size ? rows.filter((row) => !this.hidden.has(row.category)) : rows;
  }

  /** Bring the row of a slot into sight, and select it. */
  async show(seq) {
    this.scroller.following = false;
    await this.model.jump(seq);
    const all = this.model.rows;
    const row = all.findLast((candidate) => candidate.seq <= seq);
    if (!row) return;
    if (this.hidden.has(row.category)) this.hidden.delete(row.category);
    this.selected = row.seq;
    if (row.kind === "call" || row.kind === "result") this.opened.add(row.seq);
    this.window.around(this.rows, row.seq);
    this.page.drawNow();
    this.scroller.show(row.seq);
    this.focusRow(row.seq);
  }

  /** Go to the newest event, and follow. */
  async toEnd() {
    await this.model.jumpToEnd();
    this.window.followEnd();
    this.scroller.following = true;
    this.draw();
  }

  /** Go to the first event. */
  toStart() {
    return this.show(0);
  }

  /** Select the row that is `by` rows further. */
  async move(by) {
    const mounted = this.window.select(this.rows);
    if (!mounted.length) return;
    const at = mounted.findIndex((row) => row.seq === this.selected);
    const next = mounted[at < 0 ? mounted.length - 1 : Math.min(mounted.length - 1, Math.max(0, at + by))];
    this.selected = next.seq;
    if (next !== mounted.at(-1)) this.scroller.following = false;
    this.page.drawNow();
    this.focusRow(next.seq);
  }

  focusRow(seq) {
    const row = document.getElementById(`seq-${seq}`);
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  }

  get selectedRow() {
    return this.model.rowIndex.get(this.selected) ?? null;
  }

  setOpened(seq, opened) {
    if (opened === this.opened.has(seq)) return;
    if (opened) this.opened.add(seq);
    else this.opened.delete(seq);
    this.draw();
  }

  /** Unfold all mounted calls, or fold them if all are unfolded. */
  toggleAll() {
    const calls = this.window.select(this.rows).filter((row) => row.kind === "call" || row.kind === "result");
    const all = calls.every((row) => this.opened.has(row.seq));
    for (const row of calls) {
      if (all) this.opened.delete(row.seq);
      else this.opened.add(row.seq);
    }
    this.draw();
  }

  toggleCategory(category) {
    if (!this.hidden.delete(category)) this.hidden.add(category);
    this.draw();
  }

  async #older() {
    if (this.drawing || !this.model.rows.length) return;
    if (this.window.extendUp(this.rows)) return this.draw();
    const before = this.window.select(this.rows)[0];
    if (!(await this.model.loadOlder())) return;
    if (this.window.first !== -1 && before) this.window.extendUp(this.rows);
    this.draw();
  }

  async #newer() {
    if (this.scroller.following && this.model.isAtEnd) return;
    if (this.window.last !== Infinity && this.window.extendDown(this.rows)) return this.draw();
    if (this.model.isAtEnd) {
      this.window.last = Infinity;
    } else if (await this.model.loadNewer()) {
      this.window.extendDown(this.rows);
      this.draw();
    }
  }

  #moved(atBottom) {
    const follows = atBottom && this.model.isAtEnd && this.window.select(this.rows).at(-1) === this.rows.at(-1);
    if (follows === this.scroller.following) return;
    this.scroller.following = follows;
    if (follows) this.window.last = Infinity;
    else this.window.hold(this.rows);
    this.draw();
  }

  /** Called after each drawing. */
  drawn() {
    this.scroller.attach(document.querySelector(".log"));
    if (this.scroller.following && !this.model.isAtEnd) this.model.jumpToEnd();
    else this.scroller.check();
    this.#announce();
  }

  #announce() {
    const { status } = this.model;
    if (!status || phaseOf(status) === this.announced) return;
    if (this.announced) announce([statusWord(phaseOf(status)), progressOf(status) || waitsFor(status)].filter(Boolean).join(". "));
    this.announced = phaseOf(status);
  }

  /** Draw what `render` draws, and keep the place that is read. */
  around(render) {
    this.model.refresh();
    this.scroller.around(render);
  }

  template() {
    const { model } = this;
    if (model.error && !model.info) return html`<div class="centered"><h1>Conversation</h1><p class="failure">${model.error.sentence ?? model.error.message}</p></div>`;
    if (!model.info) return html`<div class="centered" aria-busy="true"><h1 class="visually-hidden">Conversation</h1><p class="quiet">Loading …</p></div>`;
    const { status } = model;
    const shared = { status, actions: this.steering, canWrite: this.canWrite, canFork: this.canFork, busy: this.steering.busy };
    return html`<div class="conversation">
      ${conversationHeader({ ...shared, title: this.title, model, workflowUrl: this.page.workflowUrl(model.info) })}
      ${waitingBanner({ ...shared, rowIndex: model.rowIndex, draw: this.draw })} ${problems(this)} ${filters(this)} ${logSection(this)} ${this.#composer(status)}
    </div>`;
  }

  /** Select the row that has the focus. */
  select(event) {
    const seq = Number(event.target.closest?.("[data-seq]")?.dataset.seq);
    if (Number.isNaN(seq) || seq === this.selected) return;
    this.selected = seq;
    this.draw();
  }

  #composer(status) {
    if (!this.canWrite) return nothing;
    const send = () => this.send();
    return html`<form class="composer" @submit=${(event) => (event.preventDefault(), send())}>
      ${editor({ id: "message", label: "Message", placeholder: status.status === "closed" ? "Message the agent, and open it again" : "Message the agent", attachments: this.attachments, submit: send, enterSends: true, rows: 2 })}
      <button type="submit" class="primary" ?disabled=${this.steering.busy}>Send</button>
    </form>`;
  }

  /** Send what is in the field. */
  async send() {
    const field = document.getElementById("message");
    const text = field.value.trim();
    const images = this.attachments.images.map((image) => image.url);
    if (!text && !images.length) return;
    if (await this.steering.send(text, images)) {
      field.value = "";
      this.attachments.clear();
      await this.toEnd();
    }
  }

  /** Return the address of an event, to be copied. */
  linkTo(seq) {
    return location.origin + conversationPath(this.model.api.id, this.model.info.access === "owner" ? null : this.model.info.owner, seq);
  }
}
