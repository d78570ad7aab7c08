// Samples of a batch: what became of each, and its scores as numbers.

const GRADES = { C: 1, P: 0.5, I: 0, N: 0 };

export const OUTCOMES = {
  all: "All",
  failed: "Failed",
  limited: "Limited",
  scored: "Scored",
  missing: "Missing",
};

/** Return the newest attempt of each epoch, which is the one that counts. */
export function finalAttempts(sample) {
  const newest = new Map();
  const attempts = [...sample.attempts].sort((a, b) => a.epoch - b.epoch || a.number - b.number);
  for (const attempt of attempts) newest.set(attempt.epoch, attempt);
  return [...newest.values()];
}

/** Return what became of a sample: failed or missing as soon as one epoch is. */
export function outcomeOf(sample, epochs) {
  const statuses = new Set(finalAttempts(sample).map((attempt) => attempt.status));
  if (statuses.has("failed")) return "failed";
  if (finalAttempts(sample).length < epochs) return "missing";
  return statuses.has("limited") ? "limited" : "scored";
}

/** Return a score's numbers by metric; a plain value has the metric "". */
export function numbersOf(score) {
  const metrics = typeof score.value === "object" && score.value !== null ? score.value : { "": score.value };
  const numbers = {};
  for (const [metric, value] of Object.entries(metrics)) {
    const number = typeof value === "string" ? GRADES[value] : Number(value);
    if (Number.isFinite(number)) numbers[metric] = number;
  }
  return numbers;
}

/** Return the mean of a sample's score over its epochs; null without a number. */
export function meanScore(sample, scorer, metric = "") {
  const numbers = finalAttempts(sample)
    .map((attempt) => attempt.scores[scorer])
    .filter(Boolean)
    .map((score) => numbersOf(score)[metric])
    .filter((number) => number !== undefined);
  return numbers.length ? numbers.reduce((sum, number) => sum + number, 0) / numbers.length : null;
}

/** List the scorers with their metrics, as `{scorer, metric, name}`. */
export function listMetrics(samples) {
  const found = new Map();
  for (const sample of samples) {
    for (const attempt of finalAttempts(sample)) {
      for (const [scorer, score] of Object.entries(attempt.scores)) {
        for (const metric of Object.keys(numbersOf(score))) {
          const name = metric ? `${scorer}/${metric}` : scorer;
          found.set(name, { scorer, metric, name });
        }
      }
    }
  }
  return [...found.values()];
}

/** Return the running mean of the numbers, with twice its standard error around it. */
export function runningMeans(numbers) {
  let [sum, squares] = [0, 0];
  const columns = { mean: [], low: [], high: [] };
  numbers.forEach((number, at) => {
    sum += number;
    squares += number * number;
    const count = at + 1;
    const mean = sum / count;
    const variance = count > 1 ? Math.max(0, squares - sum * mean) / (count - 1) : 0;
    const band = 2 * Math.sqrt(variance / count);
    columns.mean.push(mean);
    columns.low.push(mean - band);
    columns.high.push(mean + band);
  });
  return columns;
}

/** Count numbers in bins of equal width: `{starts, counts, width}`. */
export function histogram(numbers, bins = 20) {
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const width = (most - least || 1) / bins;
  const counts = Array(bins).fill(0);
  for (const number of numbers) counts[Math.min(bins - 1, Math.floor((number - least) / width))] += 1;
  return { starts: counts.map((_, at) => least + at * width), counts, width };
}
