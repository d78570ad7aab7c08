// What can be done with a conversation or one of its events, in dialogs.

import { html, nothing } from "../shell/html.js";
import { confirmChoice, showDialog } from "../shell/dialog.js";
import { codeBlock, markdownBlock } from "./blocks.js";

export { confirmChoice };
export { showShare } from "../shell/share_dialog.js";

/** The formats of exports, as `perdure export` has them. */
export const EXPORT_FORMATS = [
  ["html", "A page for people"],
  ["openai-chat", "Messages of the OpenAI API"],
  ["atif", "ATIF"],
  ["openhands", "OpenHands"],
  ["inspect", "Inspect"],
  ["raw", "The log itself"],
];

/** Let the user choose among what can be done with an event; returns the choice. */
export function chooseForEvent(row, canFork) {
  const choices = [
    ...(canFork ? [["fork", "Fork from here", "A new conversation with the events up to this one"]] : []),
    ...(canFork ? [["retry", "Retry from here", "A new conversation that goes on from before this event"]] : []),
    ["link", "Copy a link", "To this event"],
    ["raw", "Raw JSON", "As the log has it"],
    ["files", "Files at this event", "The workspace as it was then"],
  ];
  return chooseFrom(`Event ${row.seq}`, choices);
}

/** Let the user choose among what can be done with the conversation; returns the choice. */
export function chooseForConversation(status, { canWrite, canFork, isOwner }) {
  const closed = status.status === "closed";
  const choices = [
    ...(canWrite ? [["ask", "Ask beside", "A question to the agent that does not enter the log"]] : []),
    ...(canWrite ? [["rename", "Rename", "Change the title"]] : []),
    ["download", "Download", "Export the conversation"],
    ...(isOwner ? [["share", "Share", "Let another user read or steer it"]] : []),
    ...(canFork ? [["fork", "Fork", "A new conversation with all its events"]] : []),
    ...(canWrite && !closed ? [["condense", "Condense", "Make the model's view smaller"]] : []),
    ...(canWrite && !closed ? [["reopen", "Reopen", "Start its workflow, if it needs one and has none"]] : []),
    ...(canWrite && !closed ? [["close", "Close", "End it; its log stays, and a message opens it again"]] : []),
    ...(isOwner ? [["hide", "Delete", "Close it and take it off the list"]] : []),
  ];
  return chooseFrom("Conversation", choices);
}

function chooseFrom(title, choices) {
  return showDialog(
    title,
    ({ close }) => html`<ul class="choices">
      ${choices.map(
        ([value, label, explanation]) =>
          html`<li>
            <button type="button" @click=${() => close(value)}><b>${label}</b> <span class="quiet">${explanation}</span></button>
          </li>`,
      )}
    </ul>`,
  );
}

/** Show an entry as the log has it. */
export function showRaw(row) {
  const entries = [row.entry, ...(row.answer && row.answer !== row.entry ? [row.answer] : [])];
  const blocks = entries.map((entry) => codeBlock(JSON.stringify(entry.raw, null, 2), "json"));
  return showDialog(`Event ${row.seq} as JSON`, () => html`${blocks}`, { wide: true });
}

/** Ask the agent beside the conversation. */
export function showAsk(api) {
  let answer = null;
  let failure = "";
  let busy = false;
  return showDialog(
    "Ask beside",
    ({ draw }) => {
      const ask = async (event) => {
        event.preventDefault();
        const question = event.target.elements.question.value.trim();
        if (!question || busy) return;
        [busy, failure, answer] = [true, "", null];
        draw();
        try {
          answer = await api.ask(question);
        } catch (error) {
          failure = error.sentence ?? error.message;
        }
        busy = false;
        draw();
      };
      return html`<form @submit=${ask} class="stacked">
        <label for="question">The agent answers from what it knows; neither question nor answer enters the log.</label>
        <textarea id="question" name="question" rows="3" required autofocus></textarea>
        <div class="buttons"><button type="submit" class="primary" ?disabled=${busy}>${busy ? "Asking …" : "Ask"}</button></div>
        <div aria-live="polite">
          ${failure ? html`<p class="failure">${failure}</p>` : nothing}
          ${answer ? markdownBlock(answer.text ?? answer.answer ?? "", answer) : nothing}
        </div>
      </form>`;
    },
    { wide: true },
  );
}

/** Offer the exports as downloads. */
export function showDownloads(api) {
  return showDialog(
    "Download",
    () => html`<ul class="choices">
      ${EXPORT_FORMATS.map(
        ([format, label]) => html`<li><a class="button" href=${api.exportPath(format)} download><b>${format}</b> <span class="quiet">${label}</span></a></li>`,
      )}
    </ul>`,
  );
}

/** Ask for a new title; resolves to it, or to undefined. */
export function askTitle(title) {
  return showDialog("Rename", ({ close }) => {
    const submit = (event) => {
      event.preventDefault();
      close(event.target.elements.title.value.trim());
    };
    return html`<form @submit=${submit} class="stacked">
      <label for="new-title">Title</label>
      <input id="new-title" name="title" maxlength="200" .value=${title ?? ""} required autofocus />
      <div class="buttons"><button type="submit" class="primary">Rename</button></div>
    </form>`;
  });
}
