// The view of all discussions.

import { html } from "../shell/html.js";
import { PolledList } from "../shell/polled_list.js";
import { discussionPath } from "../shell/router.js";
import { formatCost } from "../log/usage.js";
import { listDiscussions, listSharedDiscussions } from "../wire/discussions.js";
import { isOver, progressLine, statusPill } from "./status.js";

/** The discussions of the user, with their progress. */
export class DiscussionsView extends PolledList {
  constructor(page) {
    super(page, {
      title: "Discussions",
      noun: "discussion",
      name: "discussions",
      hint: html`<code>perdure discuss FILE</code> starts one; it is followed here.`,
      list: listDiscussions,
      listShared: listSharedDiscussions,
      compare: (a, b) => isOver(a.status) - isOver(b.status),
      isBusy: ({ status }) => !isOver(status),
      keyOf: (item) => `${item.owner}/${item.id}`,
      show: discussionItem,
    });
  }
}

function discussionItem({ id, owner, access, topic, agents, status }) {
  const shared = access === "owner" ? "" : ` · shared by ${owner}`;
  return html`<li>
    <a href=${discussionPath(id, access === "owner" ? null : owner)}>
      ${statusPill(status)}
      <span class="item-main">
        <span class="item-title">${topic || id}</span>
        <span class="item-facts">${agents.join(", ")} · ${id}${shared}</span>
        <span class="quiet">${progressLine(status)}</span>
      </span>
      <span class="item-cost">${formatCost({ cost: status.cost })}</span>
    </a>
  </li>`;
}
