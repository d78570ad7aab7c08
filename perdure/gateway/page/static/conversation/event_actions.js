// What can be done with one event.

import { announce } from "../shell/announcer.js";
import { conversationPath } from "../shell/router.js";
import { ConversationApi } from "../wire/conversations.js";
import { DIALOGS, FILES } from "./parts.js";

/** The acts on the events of a view. */
export class EventActions {
  constructor(view) {
    this.view = view;
  }

  async openMenu(row) {
    const choice = await (await DIALOGS.get()).chooseForEvent(row, this.view.canFork);
    if (choice) await this[choice](row);
  }

  raw = async (row) => (await DIALOGS.get()).showRaw(row);

  files = async (row) => (await FILES.get()).showFiles(this.view.model, lastSeq(row));

  link = async (row) => {
    const address = this.view.linkTo(row.seq);
    history.replaceState(null, "", `#seq-${row.seq}`);
    try {
      await navigator.clipboard.writeText(address);
      announce("The link is copied.");
    } catch {
      announce("The address of this page is the link.");
    }
  };

  fork = (row) => this.view.steering.forkAt(lastSeq(row));

  /** Go on from before the event: send the message anew, or let the agent answer again. */
  retry = (row) =>
    this.view.steering.run(async () => {
      const { api } = this.view.model;
      const isMessage = row.kind === "message" && row.author === "user";
      const at = isMessage ? row.seq - 1 : firstOfResponse(row, this.view.model.rows) - 1;
      const forked = await api.fork(Math.max(0, at));
      const forkApi = new ConversationApi(forked.conversation_id);
      if (isMessage) await forkApi.send(row.text, row.images);
      else await forkApi.resume();
      this.view.page.go(conversationPath(forked.conversation_id));
    });
}

/** Return the last slot that belongs to a row. */
function lastSeq(row) {
  return Math.max(row.seq, row.answer?.seq ?? row.seq);
}

/** Return the first slot of the model's response that a row belongs to. */
function firstOfResponse(row, rows) {
  const id = row.entry.event.llm_response_id;
  if (!id) return row.seq;
  return rows.find((candidate) => candidate.entry.event.llm_response_id === id)?.seq ?? row.seq;
}
