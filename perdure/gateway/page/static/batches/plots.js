// Plots of a batch's scores and costs; the library is loaded with them.

import { loadStyle } from "../shell/style.js";
import uPlot from "../vendor/uplot/uPlot.esm.js";
import { histogram, meanScore, runningMeans } from "./samples.js";

const HEIGHT = 200;
const WHOLE_NUMBERS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];

/** Draw the plots of samples into an element, in place of those that are there. */
export function drawPlots(element, samples, { scorer, metric, name }) {
  loadStyle("vendor/uplot/uPlot.min.css");
  element.replaceChildren();
  const scores = samples.map((sample) => meanScore(sample, scorer, metric)).filter((score) => score !== null);
  const costs = samples.flatMap((sample) => sample.attempts.map((attempt) => attempt.usage.cost ?? 0));
  if (scores.length > 1) drawRunningMean(element, scores, name);
  if (costs.some((cost) => cost > 0)) drawCosts(element, costs);
}

function drawRunningMean(element, scores, name) {
  const { mean, low, high } = runningMeans(scores);
  const numbers = scores.map((_, at) => at + 1);
  const colour = colourOf("--accent");
  const series = [
    { label: "samples" },
    { label: "upper", stroke: "transparent" },
    { label: "lower", stroke: "transparent" },
    { label: name, stroke: colour, width: 2, points: { show: false } },
  ];
  const bands = [{ series: [1, 2], fill: colourOf("--accent-ground") }];
  const caption = `${name}: mean over the first samples, ${mean.at(-1).toFixed(3)} over all ${scores.length}, with twice its standard error`;
  draw(element, caption, [numbers, high, low, mean], { series, bands, scales: { x: { time: false } }, increments: WHOLE_NUMBERS });
}

function drawCosts(element, costs) {
  const { starts, counts, width } = histogram(costs);
  const series = [
    { label: "US dollars" },
    { label: "attempts", stroke: colourOf("--good"), fill: colourOf("--good-ground"), paths: uPlot.paths.bars({ size: [0.9] }), points: { show: false } },
  ];
  const most = Math.max(...costs);
  const caption = `Cost of an attempt in US dollars: ${costs.length} attempts, the dearest $${most.toFixed(4)}`;
  const middles = starts.map((start) => start + width / 2);
  draw(element, caption, [middles, counts], { series, scales: { x: { time: false } } });
}

function draw(element, caption, data, options) {
  const figure = document.createElement("figure");
  const words = document.createElement("figcaption");
  words.textContent = caption;
  figure.append(words);
  element.append(figure);
  const line = { stroke: colourOf("--line"), width: 1 };
  const axis = { stroke: colourOf("--quiet"), grid: line, ticks: line };
  const plot = new uPlot(
    { width: Math.max(240, figure.clientWidth), height: HEIGHT, legend: { show: false }, cursor: { show: false }, axes: [{ ...axis, incrs: options.increments }, axis], ...options },
    data,
    figure,
  );
  plot.root.setAttribute("role", "img");
  plot.root.setAttribute("aria-label", caption);
}

function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
