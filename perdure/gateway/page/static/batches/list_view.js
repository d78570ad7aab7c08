// The view of all batches.

import { html, nothing } from "../shell/html.js";
import { PolledList } from "../shell/polled_list.js";
import { formatCost, formatNumber } from "../log/usage.js";
import { batchPath } from "../shell/router.js";
import { listBatches, listSharedBatches } from "../wire/batches.js";
import { progressBar, scoreLine, statusPill } from "./progress.js";

const ORDER = { running: 0, paused: 1, stopped: 2, finished: 3 };

/** The batches of the user, with their progress. */
export class BatchesView extends PolledList {
  constructor(page) {
    super(page, {
      title: "Batches",
      noun: "batch",
      name: "batches",
      hint: html`<code>perdure batch run FILE</code> starts one; it is followed here.`,
      list: listBatches,
      listShared: listSharedBatches,
      compare: compareBatches,
      isBusy: (batch) => batch.progress.status === "running",
      keyOf: (batch) => `${batch.owner}/${batch.name}`,
      show: batchItem,
    });
  }
}

function compareBatches({ progress: a }, { progress: b }) {
  return ORDER[a.status] - ORDER[b.status] || (b.started ?? "").localeCompare(a.started ?? "");
}

function batchItem({ name, owner, access, model, samples, epochs, progress }) {
  const size = `${formatNumber(samples)} samples${epochs > 1 ? ` × ${epochs} epochs` : ""}`;
  return html`<li>
    <a href=${batchPath(name, access === "owner" ? null : owner)}>
      ${statusPill(progress)}
      <span class="item-main">
        <span class="item-title">${name}</span>
        <span class="item-facts">${model} · ${size}${access === "owner" ? "" : ` · shared by ${owner}`}</span>
        ${progressBar(progress)}
      </span>
      <span class="item-score">${scoreLine(progress) || nothing}</span>
      <span class="item-cost">${formatCost(progress.spent)}</span>
    </a>
  </li>`;
}
