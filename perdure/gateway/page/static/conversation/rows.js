// The rows of a conversation.

import { html, guard, nothing } from "../shell/html.js";
import { describeNote } from "../log/fold.js";
import { countTokens, formatCost, formatMoment, formatSeconds, formatTokens } from "../log/usage.js";
import { foldable, imageBlocks, markdownBlock, plainBlock } from "./blocks.js";
import { callSeconds, headline, outcome } from "./call.js";
import { CALL_BODY } from "./parts.js";

const SHORTEST = 0.05; // seconds that are worth showing
const AUTHORS = { user: "You", agent: "Agent", system: "System", environment: "System" };

/**
 * Show a row.
 *
 * `context` has `{api, draw, folds, opened, selected, pending, statusName, end, actions}`: `opened` the
 * seqs of unfolded rows, `pending` the calls without a result by the seqs of their actions.
 */
export function rowTemplate(row, context) {
  const opened = context.opened.has(row.seq);
  const selected = context.selected === row.seq;
  const pending = context.pending.get(row.seq);
  const folds = context.folds.version(row.seq);
  const state = row.kind === "call" ? outcome(row, pending, context.statusName) : null;
  const body = opened ? CALL_BODY.now(context.draw) : null;
  return html`${guard([row, opened, selected, state?.word, folds, body], () => article(row, { ...context, opened, state }))}`;
}

function article(row, context) {
  const selected = context.selected === row.seq;
  return html`<article
    class=${`row ${row.kind} ${row.author ?? ""} ${row.failed ? "failed" : ""} ${row.continues ? "continues" : ""}`}
    id=${`seq-${row.seq}`}
    data-seq=${row.seq}
    tabindex=${selected ? 0 : -1}
    aria-label=${`${nameRow(row)}, event ${row.seq}`}
    aria-current=${selected ? "true" : nothing}
  >
    ${row.kind === "call" || row.kind === "result" ? callRow(row, context) : textRow(row, context)}
  </article>`;
}

function nameRow(row) {
  if (row.kind === "message") return AUTHORS[row.author] ?? row.author;
  if (row.kind === "call" || row.kind === "result") return `Tool ${row.entry.event.tool_name}`;
  return row.kind === "prompt" ? "System prompt" : "Note";
}

function head(row, context, name) {
  return html`<header class="row-head">
    <span class="author">${name}</span>
    ${meta(row)} ${tools(row, context)}
  </header>`;
}

/** Show time, tokens, cost and duration of a row. */
function meta(row) {
  const { entry } = row;
  const usage = entry.usage;
  const seconds = callSeconds(row);
  const parts = [];
  if (countTokens(usage)) parts.push(`${formatTokens(countTokens(usage))} tokens`, formatCost(usage, "cost unknown"));
  if (usage?.latency >= SHORTEST) parts.push(`model ${formatSeconds(usage.latency)}`);
  if (seconds >= SHORTEST) parts.push(formatSeconds(seconds));
  parts.push(formatMoment(entry.event.timestamp));
  return html`<span class="meta">${parts.filter(Boolean).join(" · ")}</span>`;
}

/** Show the link to a row, and the button for what can be done with it. */
function tools(row, { actions }) {
  return html`<span class="row-tools">
    <a class="slot" href=${`#seq-${row.seq}`} aria-label=${`Event ${row.seq}`}>#${row.seq}</a>
    <button type="button" class="plain menu-button" aria-label=${`Actions for event ${row.seq}`} aria-haspopup="dialog" @click=${() => actions.openMenu(row)}>⋯</button>
  </span>`;
}

function textRow(row, context) {
  switch (row.kind) {
    case "message":
      return messageRow(row, context);
    case "prompt":
      return promptRow(row, context);
    default:
      return noteRow(row, context);
  }
}

function messageRow(row, context) {
  const { event } = row.entry;
  const name = AUTHORS[row.author] ?? row.author;
  const remark = event.truncated ? "cut off at its length limit" : row.author === "agent" ? "" : (event.sender ?? actorOf(event, context));
  return html`${head(row, context, remark ? `${name} (${remark})` : name)} ${reasoning(row)}
    <div class="content">
      ${foldable(row.text, `${row.seq} text`, context.folds, (text) => markdownBlock(text, `${row.seq} ${row.entry.event.id}`))}
      ${imageBlocks(row.images, context.api)}
      ${row.additions ? html`<details class="aside"><summary>Added by the system</summary>${plainBlock(row.additions)}</details>` : nothing}
    </div>`;
}

/** Return who sent a message in another one's conversation; an empty text for its owner. */
function actorOf(event, { owner }) {
  return event.actor && owner && event.actor !== owner ? event.actor : "";
}

function reasoning(row) {
  if (!row.reasoning) return nothing;
  return html`<details class="aside reasoning">
    <summary>Reasoning</summary>
    ${plainBlock(row.reasoning)}
  </details>`;
}

function promptRow(row, context) {
  const { event } = row.entry;
  return html`${head(row, context, "System prompt")}
    <details class="aside">
      <summary>${event.tools?.length ?? 0} tools</summary>
      ${plainBlock([event.system_prompt.text, event.dynamic_context?.text ?? ""].filter(Boolean).join("\n\n"))}
      <dl class="tools">
        ${(event.tools ?? []).map((tool) => html`<dt><code>${tool.name}</code></dt><dd>${tool.description}</dd>`)}
      </dl>
    </details>`;
}

function noteRow(row, context) {
  const { event } = row.entry;
  const more = event.kind === "Condensation" ? event.summary : event.kind === "RecallEvent" ? event.content : "";
  return html`<div class="note-line">
      <span class="note-text">${describeNote(event)}</span>
      ${meta(row)} ${tools(row, context)}
    </div>
    ${more ? html`<details class="aside"><summary>${event.kind === "Condensation" ? "In their place" : "Content"}</summary>${plainBlock(more)}</details>` : nothing}`;
}

function callRow(row, context) {
  const { event } = row.entry;
  const { state, opened } = context;
  const late = row.kind === "result";
  const end = late ? outcome(row, null, "") : state;
  return html`${thought(row, context)}
    <div class="call-frame">
      <details
        class=${`call-block call-${end.state}`}
        .open=${opened}
        @toggle=${(toggled) => context.actions.setOpened(row.seq, toggled.target.open)}
      >
        <summary>
          <span class="mark" aria-hidden="true">${end.mark}</span>
          <span class="tool">${event.tool_name}</span>
          <code class="headline">${late ? "result" : headline(event)}</code>
          <span class="word">${end.word}</span>
          ${meta(row)}
        </summary>
        ${opened ? html`<div class="call-body">${CALL_BODY.module?.callBody(row, context) ?? "Loading …"}</div>` : nothing}
      </details>
      ${tools(row, context)}
    </div>`;
}

/** Show what the model said and thought before the first call of a response. */
function thought(row, context) {
  if (row.kind !== "call" || row.continues) return nothing;
  if (!row.thought) return reasoning(row);
  return html`<div class="before-call">${reasoning(row)}${markdownBlock(row.thought, `${row.seq} thought`)}</div>`;
}

/** Show the text of a step at work. */
export function draftTemplate(draft, context) {
  const isAnswer = draft.step === "llm.chat";
  const show = CALL_BODY.now(context.draw)?.terminalBlock ?? plainBlock;
  const name = isAnswer ? "Agent" : draft.step === "llm.condense" ? "Summary" : "Output";
  return html`<article class="row draft message agent" aria-label=${`${name}, at work`}>
    <header class="row-head"><span class="author">${name}</span> <span class="meta working">at work</span></header>
    <div class="content">
      ${isAnswer ? markdownBlock(draft.text.slice(-20_000), `draft ${draft.id}`) : show(draft.text.slice(-20_000))}
    </div>
  </article>`;
}
