// Steers a conversation: each act waits for the gateway, and says what went wrong.

import { conversationPath } from "../shell/router.js";
import { DIALOGS, FILES, TIMELINE } from "./parts.js";

/** The acts of a view; `failure` is the sentence about the last one that failed. */
export class Steering {
  constructor(view) {
    this.view = view;
    this.acts = 0; // that wait or run
    this.last = Promise.resolve();
    this.failure = "";
  }

  get busy() {
    return this.acts > 0;
  }

  get api() {
    return this.view.model.api;
  }

  /** Run an act after those before it; returns its result, or undefined if it failed. */
  run(act) {
    this.acts += 1;
    this.view.draw();
    this.last = this.last.then(() => this.#runNow(act));
    return this.last;
  }

  async #runNow(act) {
    this.failure = "";
    try {
      return await act();
    } catch (error) {
      this.failure = error.sentence ?? error.message;
      return undefined;
    } finally {
      this.acts -= 1;
      this.view.draw();
    }
  }

  send = (text, images) => this.run(async () => (await this.api.send(text, images, this.view.model.status.status === "closed")) ?? true);
  pause = () => this.run(() => this.api.pause());
  resume = () => this.run(() => this.api.resume());
  interrupt = () => this.run(() => this.api.interrupt());
  condense = () => this.run(() => this.api.condense());
  reopen = () =>
    this.run(async () => {
      const { outcome, reason } = await this.api.reopen();
      this.failure = outcome === "reopened" || outcome === "running" ? "" : (reason ?? `Not reopened: it is ${outcome.replace("_", " ")}.`);
    });
  respond = (accept, calls, reason = "") => this.run(() => this.api.respond(accept, calls, reason));

  /** Answer the question of a call, by `{choice}` or `{text}`. */
  answerQuestion = (call, fields) => this.run(() => this.api.answerQuestion(call, fields));

  /** Accept or reject all calls that wait; where a question does, go to its answers. */
  respondToAll(accept) {
    const { status } = this.view.model;
    if (status.status === "waiting_for_answer") document.querySelector(".waiting form :is(button, input)")?.focus();
    const calls = status.pending.filter((call) => call.asks).map((call) => call.tool_call_id);
    if (!calls.length) return;
    if (accept) this.respond(true, calls);
    else document.querySelector(".waiting input[name=reason]")?.focus();
  }

  answer = () => document.getElementById("message")?.focus();

  close = async () => {
    const { confirmChoice } = await DIALOGS.get();
    const sure = await confirmChoice("Close", "What is running is stopped. The log stays, and a message opens the conversation again.", "Close it");
    if (sure) await this.run(() => this.api.close());
  };

  hide = async () => {
    const { confirmChoice } = await DIALOGS.get();
    const sure = await confirmChoice("Delete", "The conversation is closed and leaves your list.", "Delete it");
    if (!sure) return;
    await this.run(async () => {
      await this.api.hide();
      this.view.page.go("/");
    });
  };

  rename = async () => {
    const title = await (await DIALOGS.get()).askTitle(this.view.title);
    if (title) await this.run(() => this.api.note({ title }));
  };

  ask = async () => (await DIALOGS.get()).showAsk(this.api);
  download = async () => (await DIALOGS.get()).showDownloads(this.api);
  share = async () => (await DIALOGS.get()).showShare(this.api, conversationPath(this.api.id, this.view.model.info.owner));
  fork = () => this.forkAt(null);

  forkAt = (at) => this.run(async () => this.view.page.go(conversationPath((await this.api.fork(at)).conversation_id)));

  openFiles = async () => (await FILES.get()).showFiles(this.view.model, null);

  openTimeline = async () => {
    const seq = await (await TIMELINE.get()).showTimeline(this.view.model);
    if (seq !== undefined) this.view.show(seq);
  };

  openMore = async () => {
    const choice = await (await DIALOGS.get()).chooseForConversation(this.view.model.status, this.view);
    if (choice) await this[choice]();
  };
}
