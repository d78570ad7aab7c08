// Differences of two texts, line by line.

import { diffLines as compareLines } from "../vendor/diff/diff/line.js";

const MAX_EDITS = 2000; // beyond these the old text is shown as removed and the new one as added

/**
 * Compare two texts; returns lines `{sign, text}` with the sign "-", "+" or " ".
 *
 * Of longer stretches without a change only `context` lines beside the changes are kept; a line
 * with the sign "…" stands for the rest.
 */
export function diffLines(before, after, context = 3) {
  const lines = compareLines(before, after, { maxEditLength: MAX_EDITS }) ?? [
    { removed: true, value: before },
    { added: true, value: after },
  ];
  const marked = lines.flatMap(({ added, removed, value }) => {
    const sign = added ? "+" : removed ? "-" : " ";
    return splitLines(value).map((text) => ({ sign, text }));
  });
  return dropUnchanged(marked, context);
}

/** Parse a unified diff into lines with signs; its headings have the sign "@". */
export function parseUnified(diff) {
  return splitLines(diff).map((line) => {
    if (/^(diff --git|index |new file|deleted file|--- |\+\+\+ |@@)/.test(line)) return { sign: "@", text: line };
    const sign = "+-".includes(line[0]) && line ? line[0] : " ";
    return { sign, text: line.slice(1) };
  });
}

/** Split a unified diff into its files: `{path, lines}`. */
export function splitUnified(diff) {
  const files = [];
  for (const part of diff.split(/^(?=diff --git )/m).filter(Boolean)) {
    const path = /^diff --git a\/(.*) b\//.exec(part)?.[1] ?? "";
    files.push({ path, lines: parseUnified(part).slice(1) });
  }
  return files;
}

function splitLines(text) {
  if (text === "") return [];
  return text.replace(/\n$/, "").split("\n");
}

function dropUnchanged(lines, context) {
  const near = new Set();
  lines.forEach(({ sign }, at) => {
    if (sign !== " ") for (let by = -context; by <= context; by += 1) near.add(at + by);
  });
  const kept = [];
  lines.forEach((line, at) => {
    if (near.has(at)) kept.push(line);
    else if (kept.at(-1)?.sign !== "…") kept.push({ sign: "…", text: "" });
  });
  return kept;
}
