// The view of one batch.

import { html, nothing, repeat } from "../shell/html.js";
import { Lazy } from "../shell/lazy.js";
import { batchPath, conversationPath } from "../shell/router.js";
import { loadStyle } from "../shell/style.js";
import { formatCost, formatNumber, formatSeconds } from "../log/usage.js";
import { BatchModel } from "./batch_model.js";
import { formatMean, progressBar, reasonLine, spending, statusPill } from "./progress.js";
import { OUTCOMES, finalAttempts, listMetrics, meanScore, outcomeOf } from "./samples.js";

const MAX_SHOWN = 300;
const PLOTS = new Lazy(() => import("./plots.js"));
const DIALOGS = new Lazy(() => import("./dialogs.js"));
const SHARING = new Lazy(() => import("../shell/share_dialog.js"));

/** A batch: its progress, its scores, and its samples. */
export class BatchView {
  constructor(page, route) {
    this.page = page;
    this.title = route.id;
    this.model = new BatchModel(route.id, route.query.get("owner"), page.draw);
    this.outcome = "all";
    this.search = "";
    this.busy = false;
    this.keys = [
      { keys: ["p"], label: "Pause", run: () => this.#write(() => this.model.api.pause()) },
      { keys: ["u"], label: "Resume", run: () => this.#write(() => this.model.api.resume()) },
      { keys: ["t"], label: "Change its limits", run: () => this.#retune() },
      { keys: ["r"], label: "Run again what failed", run: () => this.#isOwner && this.#write(() => this.model.api.retry("failed")) },
      { keys: ["c"], label: "Compare", run: () => this.#compare() },
      { keys: ["d"], label: "Download the report", run: () => document.querySelector("a[download]").click() },
      { keys: ["f"], label: "Next outcome", run: () => this.#nextOutcome() },
      { keys: ["/"], label: "Search", run: () => document.getElementById("sample-search").focus() },
      { keys: ["j", "ArrowDown"], label: "Next sample", run: () => this.#move(1) },
      { keys: ["k", "ArrowUp"], label: "Previous sample", run: () => this.#move(-1) },
    ];
    this.schemes = matchMedia("(prefers-color-scheme: dark)");
    this.repaint = () => ((this.drawnSamples = null), page.draw());
    this.schemes.addEventListener("change", this.repaint);
    loadStyle("styles/batches.css");
    this.model.open();
  }

  close() {
    this.schemes.removeEventListener("change", this.repaint);
    this.model.close();
  }

  update(route) {
    return route?.view === "batch" && route.id === this.model.api.name && (route.query.get("owner") ?? null) === this.model.api.owner;
  }

  get #canWrite() {
    return this.model.batch?.access !== "read" && this.page.may("write");
  }

  get #isOwner() {
    return this.model.batch?.access === "owner" && this.page.may("write");
  }

  /** Run an act that changes the batch, one at a time. */
  async #write(act) {
    if (this.busy || !this.#canWrite) return;
    this.busy = true;
    this.page.draw();
    const done = await this.model.run(async () => {
      await act();
      return true;
    });
    this.busy = false;
    if (done) await this.model.refresh();
    this.page.draw();
  }

  async #retune() {
    if (!this.#canWrite) return;
    const limits = await (await DIALOGS.get()).askLimits(this.model.batch.progress);
    if (limits) await this.#write(() => this.model.api.retune(limits));
  }

  async #compare() {
    (await DIALOGS.get()).showComparison(this.model.api);
  }

  async #share() {
    const { name, owner } = this.model.batch;
    (await SHARING.get()).showShare(this.model.api, batchPath(name, owner));
  }

  #nextOutcome() {
    const names = Object.keys(OUTCOMES);
    this.outcome = names[(names.indexOf(this.outcome) + 1) % names.length];
    this.page.draw();
  }

  #move(by) {
    const links = [...document.querySelectorAll(".samples a")];
    const at = links.indexOf(document.activeElement);
    links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
  }

  /** Draw the plots, where the samples are others than those that were drawn. */
  drawn() {
    const element = document.querySelector(".plots");
    if (!element || this.drawnSamples === this.model.samples || this.model.samples.length < 2) return;
    const plots = PLOTS.now(this.page.draw);
    const [metric] = listMetrics(this.model.samples);
    if (!plots) return;
    this.drawnSamples = this.model.samples;
    plots.drawPlots(element, this.model.samples, metric ?? { scorer: "", metric: "", name: "" });
  }

  template() {
    const { batch, failure } = this.model;
    if (!batch) return html`<div class="centered"><h1>${this.title}</h1><p class=${failure ? "failure" : "quiet"}>${failure || "Loading …"}</p></div>`;
    return html`<div class="list-view batch-view">
      <div class="title-line">
        <h1>${batch.name}</h1>
        ${statusPill(batch.progress)}
        <div class="buttons" role="toolbar" aria-label="Batch">${this.#buttons(batch.progress)}</div>
      </div>
      <p class="quiet">${batch.model} · ${formatNumber(batch.samples)} samples${batch.epochs > 1 ? ` × ${batch.epochs} epochs` : ""}${batch.access === "owner" ? "" : ` · shared by ${batch.owner} (${batch.access})`}</p>
      ${failure ? html`<p class="failure" role="alert">${failure}</p>` : nothing} ${reasonLine(batch)} ${progressBar(batch.progress)} ${spending(batch.progress)}
      ${this.#scores()} ${this.#failures(batch.progress)}
      <div class="plots"></div>
      ${this.#samples()}
    </div>`;
  }

  #buttons(progress) {
    const button = (label, run) => html`<button type="button" ?disabled=${this.busy} @click=${run}>${label}</button>`;
    const { api } = this.model;
    const [can, own] = [this.#canWrite, this.#isOwner];
    const running = progress.status === "running" || progress.status === "paused";
    return html`${can && progress.status === "running" ? button("Pause", () => this.#write(api.pause)) : nothing}
      ${can && progress.status === "paused" ? button("Resume", () => this.#write(api.resume)) : nothing}
      ${can && running ? button("Limits", () => this.#retune()) : nothing}
      ${own && !running && progress.failed ? button("Run again what failed", () => this.#write(() => api.retry("failed"))) : nothing}
      ${own && progress.status === "stopped" ? button("Run what is missing", () => this.#write(() => api.retry("missing"))) : nothing}
      ${button("Compare", () => this.#compare())}
      ${own ? button("Share", () => this.#share()) : nothing}
      <a class="button" href=${api.reportPath} download>Report</a>`;
  }

  #scores() {
    const measures = this.model.summary?.measures ?? [];
    if (!measures.length) return nothing;
    return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Scores">
      <table class="data">
        <thead>
          <tr><th scope="col">Score</th><th scope="col">Reducer</th><th scope="col" class="number">Mean ± standard error</th><th scope="col" class="number">95 % interval</th><th scope="col" class="number">Samples</th></tr>
        </thead>
        <tbody>
          ${measures.flatMap((measure) => Object.entries(measure.estimates).map(([reducer, estimate]) => estimateRow(measure, reducer, estimate)))}
        </tbody>
      </table>
      </div>`;
  }

  #failures(progress) {
    const kinds = Object.entries(progress.failures ?? {});
    const limits = Object.entries(progress.limits ?? {});
    if (!kinds.length && !limits.length) return nothing;
    const words = [...kinds.map(([kind, count]) => `${count} ${kind}`), ...limits.map(([code, count]) => `${count} at ${code}`)];
    return html`<p>Failures and limits: ${words.join(" · ")}${progress.newest_failure ? html`<br /><span class="quiet">The newest: ${progress.newest_failure}</span>` : nothing}</p>`;
  }

  #samples() {
    const { model } = this;
    const metrics = listMetrics(model.samples);
    const shown = model.select(this.outcome).filter((sample) => sample.id.toLowerCase().includes(this.search.toLowerCase()));
    return html`<section>
      <div class="list-tools">
        <input id="sample-search" type="search" placeholder="Search sample ids" aria-label="Search sample ids" @input=${(event) => ((this.search = event.target.value), this.page.draw())} />
        <div class="filters" role="group" aria-label="Outcome">
          ${Object.entries(OUTCOMES).map(([name, label]) => html`<button type="button" class="chip" aria-pressed=${this.outcome === name} @click=${() => ((this.outcome = name), this.page.draw())}>${label} <span class="count">${model.select(name).length}</span></button>`)}
        </div>
      </div>
      <div class="scroll-x" tabindex="0" role="region" aria-label="Samples">
        <table class="data samples">
          <thead>
            <tr>
              <th scope="col">Sample</th><th scope="col">Outcome</th>
              ${metrics.map(({ name }) => html`<th scope="col" class="number">${name}</th>`)}
              <th scope="col" class="number">Cost</th><th scope="col" class="number">Time</th><th scope="col">Conversations</th>
            </tr>
          </thead>
          <tbody>
            ${repeat(shown.slice(0, MAX_SHOWN), (sample) => sample.id, (sample) => sampleRow(sample, metrics, model))}
          </tbody>
        </table>
      </div>
      ${shown.length > MAX_SHOWN ? html`<p class="quiet">${formatNumber(shown.length - MAX_SHOWN)} more: search, or choose an outcome.</p>` : nothing}
      ${model.complete ? nothing : html`<p><button type="button" ?disabled=${model.loading} @click=${() => model.more()}>Load more samples</button></p>`}
    </section>`;
  }
}

function estimateRow(measure, reducer, { mean, standard_error: error, interval, samples }) {
  const name = measure.metric ? `${measure.scorer}/${measure.metric}` : measure.scorer;
  return html`<tr>
    <th scope="row">${name}</th>
    <td>${reducer}</td>
    <td class="number">${formatMean(mean, error)}</td>
    <td class="number">${interval ? `${interval[0].toFixed(3)} to ${interval[1].toFixed(3)}` : "–"}</td>
    <td class="number">${formatNumber(samples)}</td>
  </tr>`;
}

function sampleRow(sample, metrics, { epochs, api }) {
  const outcome = outcomeOf(sample, epochs);
  const finals = finalAttempts(sample);
  const failure = finals.find((attempt) => attempt.failure)?.failure;
  const limit = finals.find((attempt) => attempt.limit)?.limit;
  const cost = sample.attempts.reduce((sum, attempt) => sum + (attempt.usage.cost ?? 0), 0);
  const seconds = sample.attempts.reduce((sum, attempt) => sum + attempt.seconds, 0);
  const why = failure ? `${failure.code}: ${failure.detail}` : (limit ?? "");
  return html`<tr>
    <th scope="row" class="mono">${sample.id}</th>
    <td><span class=${`pill outcome-${outcome}`}>${OUTCOMES[outcome]}</span> <span class="quiet why">${why}</span></td>
    ${metrics.map(({ scorer, metric }) => html`<td class="number">${formatMean(meanScore(sample, scorer, metric), null)}</td>`)}
    <td class="number">${formatCost({ cost })}</td>
    <td class="number">${formatSeconds(seconds)}</td>
    <td>
      ${sample.attempts.map((attempt) => html`<a href=${conversationPath(attempt.conversation_id, api.owner)} aria-label=${`Conversation of ${sample.id}, epoch ${attempt.epoch + 1}, attempt ${attempt.number + 1}`}>${epochs > 1 ? `epoch ${attempt.epoch + 1}` : "conversation"}${attempt.number ? `, attempt ${attempt.number + 1}` : ""}</a> `)}
    </td>
  </tr>`;
}
