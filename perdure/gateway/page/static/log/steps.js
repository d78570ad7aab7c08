// The steps of a conversation with their times: what a model's response or a tool call took.

import { countTokens, parseTime } from "./usage.js";

/**
 * List the steps of rows in order: `{seq, name, kind, start, end, tokens, cost, failed}`, times
 * in milliseconds.
 *
 * A response of the model begins its latency before its event; a call lasts until its result.
 */
export function listSteps(rows) {
  const steps = [];
  for (const row of rows) {
    const { entry } = row;
    const at = parseTime(entry.event.timestamp);
    if (entry.usage) {
      const { usage } = entry;
      const start = at - (usage.latency ?? 0) * 1000;
      steps.push({ ...base(row), name: usage.model || "model", kind: "model", start, end: at, tokens: countTokens(usage), cost: usage.cost ?? 0, failed: false });
    }
    if (row.kind === "call" && row.answer) {
      const end = parseTime(row.answer.event.timestamp);
      steps.push({ ...base(row), name: entry.event.tool_name, kind: "tool", start: at, end, tokens: 0, cost: 0, failed: row.failed });
    }
    if (row.kind === "message" && row.author === "user") {
      steps.push({ ...base(row), name: "message", kind: "message", start: at, end: at, tokens: 0, cost: 0, failed: false });
    }
  }
  return steps;
}

/** Group steps by turns: each begins with a message of the user. */
export function groupTurns(steps) {
  const turns = [];
  for (const step of steps) {
    if (step.kind === "message" || !turns.length) turns.push([]);
    turns.at(-1).push(step);
  }
  return turns;
}

/** Sum up steps: `{start, end, tokens, cost}`. */
export function sumSteps(steps) {
  return {
    start: Math.min(...steps.map((step) => step.start)),
    end: Math.max(...steps.map((step) => step.end)),
    tokens: steps.reduce((sum, step) => sum + step.tokens, 0),
    cost: steps.reduce((sum, step) => sum + step.cost, 0),
  };
}

function base(row) {
  return { seq: row.seq };
}
