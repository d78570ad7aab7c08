// Dialogs of a batch: its limits, and its comparison with another one.

import { html, nothing } from "../shell/html.js";
import { showDialog } from "../shell/dialog.js";
import { formatNumber } from "../log/usage.js";
import { listBatches } from "../wire/batches.js";

const MAX_CHANGES = 50;

/** Ask for new limits of a batch that runs; resolves to those that are given. */
export function askLimits(progress) {
  return showDialog("Limits", ({ close }) => {
    const submit = (event) => {
      event.preventDefault();
      const limits = {};
      for (const name of ["concurrency", "cost", "tokens", "time"]) {
        const { value } = event.target.elements[name];
        if (value) limits[name] = Number(value);
      }
      close(Object.keys(limits).length ? limits : undefined);
    };
    const field = (name, label, step, value) => html`<label for=${`limit-${name}`}>${label}</label>
      <input id=${`limit-${name}`} name=${name} type="number" min=${step} step=${step} placeholder=${value ?? "no limit"} />`;
    return html`<form class="stacked" @submit=${submit}>
      <p class="quiet">An empty field leaves a limit as it is.</p>
      ${field("concurrency", "Samples at the same time", 1, progress.concurrency)} ${field("cost", "US dollars for the whole batch", 0.01, progress.cost)}
      ${field("tokens", "Tokens for the whole batch", 1, progress.tokens)} ${field("time", "Seconds at work", 1, null)}
      <div class="buttons"><button type="submit" class="primary">Change</button></div>
    </form>`;
  });
}

/** Compare a batch with another one that the user chooses. */
export function showComparison(api) {
  const state = { names: null, result: null, failure: "", other: "" };
  const run = async (act, draw) => {
    state.failure = "";
    try {
      await act();
    } catch (error) {
      state.failure = error.sentence ?? error.message;
    }
    draw();
  };
  const load = async () => {
    const page = await listBatches();
    state.names = page.items.map((batch) => batch.name).filter((name) => name !== api.name);
  };
  return showDialog(
    "Compare",
    ({ draw }) => {
      if (state.names === null) {
        state.names = [];
        run(load, draw);
      }
      const submit = (event) => {
        event.preventDefault();
        state.other = event.target.elements.other.value;
        run(async () => (state.result = await api.compare(state.other)), draw);
      };
      return html`<form class="inline" @submit=${submit}>
          <label for="other">${api.name} against</label>
          <select id="other" name="other" required>
            ${state.names.map((name) => html`<option value=${name}>${name}</option>`)}
          </select>
          <button type="submit" class="primary" ?disabled=${!state.names.length}>Compare</button>
        </form>
        <div aria-live="polite">
          ${state.failure ? html`<p class="failure">${state.failure}</p>` : nothing} ${state.result ? comparison(state.result, api.name, state.other) : nothing}
        </div>`;
    },
    { wide: true },
  );
}

function comparison({ scorer, comparison: result }, name, other) {
  if (!result.pairs) return html`<p>No sample is scored in both.</p>`;
  const { difference, standard_error: error = null, interval, p_value: p = null } = result;
  const verdict = p !== null && p < 0.05 ? (difference > 0 ? `${name} is better` : `${name} is worse`) : "No difference beyond noise";
  return html`<h3>${verdict}</h3>
    <dl class="facts">
      <div><dt>${scorer}</dt><dd>${result.before.toFixed(3)} in ${other}, ${result.after.toFixed(3)} in ${name}</dd></div>
      <div><dt>Difference</dt><dd>${difference.toFixed(3)}${error === null ? "" : ` ± ${error.toFixed(3)}`}</dd></div>
      ${interval ? html`<div><dt>95 % interval</dt><dd>${interval[0].toFixed(3)} to ${interval[1].toFixed(3)}</dd></div>` : nothing}
      ${p === null ? nothing : html`<div><dt>p</dt><dd>${p.toFixed(4)}</dd></div>`}
      <div><dt>Pairs</dt><dd>${formatNumber(result.pairs)}</dd></div>
    </dl>
    ${changes("Better", result.better)} ${changes("Worse", result.worse)}`;
}

function changes(title, items) {
  if (!items.length) return nothing;
  return html`<details>
    <summary>${title}: ${formatNumber(items.length)} samples</summary>
    <table class="data">
      <thead><tr><th scope="col">Sample</th><th scope="col" class="number">Before</th><th scope="col" class="number">After</th></tr></thead>
      <tbody>
        ${items.slice(0, MAX_CHANGES).map((change) => html`<tr><th scope="row" class="mono">${change.id}</th><td class="number">${change.before.toFixed(3)}</td><td class="number">${change.after.toFixed(3)}</td></tr>`)}
      </tbody>
    </table>
  </details>`;
}
