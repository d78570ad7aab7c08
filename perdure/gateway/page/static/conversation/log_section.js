// The rows of a conversation on the page, with what filters them and what went wrong.

import { html, nothing, repeat } from "../shell/html.js";
import { CATEGORIES } from "../log/fold.js";
import { formatNumber } from "../log/usage.js";
import { draftTemplate, rowTemplate } from "./rows.js";

/** Show what went wrong, until it is dismissed. */
export function problems(view) {
  const { notices } = view.model;
  const failure = view.steering.failure || view.model.failure;
  if (!notices.length && !failure) return nothing;
  const dismiss = () => {
    view.model.notices = [];
    view.steering.failure = view.model.failure = "";
    view.draw();
  };
  return html`<div class="problems" role="alert">
    ${notices.map((notice) => html`<p>${notice.message}</p>`)} ${failure ? html`<p>${failure}</p>` : nothing}
    <button type="button" class="plain" aria-label="Dismiss" @click=${dismiss}>✕</button>
  </div>`;
}

/** Show which kinds of events are shown. */
export function filters(view) {
  return html`<div class="filters" role="toolbar" aria-label="Kinds of events">
    ${CATEGORIES.map(
      ([category, label]) =>
        html`<button type="button" class="chip" aria-pressed=${!view.hidden.has(category)} @click=${() => view.toggleCategory(category)}>${label}</button>`,
    )}
    <button type="button" class="chip" @click=${() => view.toggleAll()}>Unfold all</button>
  </div>`;
}

/** Show the mounted rows, and the text of steps at work. */
export function logSection(view) {
  const { model } = view;
  const mounted = view.window.select(view.rows);
  const pending = new Map(model.status.pending.map((call) => [call.seq, call]));
  const context = {
    api: model.api,
    draw: view.draw,
    folds: view.folds,
    opened: view.opened,
    selected: view.selected,
    pending,
    statusName: model.status.status,
    owner: model.info?.owner,
    actions: { setOpened: (seq, opened) => view.setOpened(seq, opened), openMenu: (row) => view.events.openMenu(row) },
  };
  const drafts = model.isAtEnd ? model.drafts.list() : [];
  return html`<div class="log-frame">
    <div class="log" role="feed" aria-label="Events" aria-busy=${model.loading !== null} tabindex="0" @focusin=${(event) => view.select(event)}>
      ${model.span.from > 0 ? html`<p class="quiet edge">${formatNumber(model.span.from)} earlier events</p>` : nothing}
      ${repeat(mounted, (row) => row.seq, (row) => rowTemplate(row, context))}
      ${repeat(drafts, (draft) => draft.id, (draft) => draftTemplate(draft, context))}
    </div>
    ${view.scroller.following ? nothing : html`<button type="button" class="to-end" @click=${() => view.toEnd()}>${newLabel(view, mounted)}</button>`}
  </div>`;
}

function newLabel(view, mounted) {
  const behind = view.model.end - 1 - (mounted.at(-1)?.answer?.seq ?? mounted.at(-1)?.seq ?? -1);
  return behind > 0 ? `↓ ${formatNumber(behind)} newer` : "↓ Newest";
}
