// Blocks of which rows are made: texts, code, images.

import { html } from "../shell/html.js";
import { MAX_MARKDOWN_CHARS, isSafeImage, isSafeLink, renderMarkdown } from "../text/markdown.js";
import { formatNumber } from "../log/usage.js";

export const FOLD_CHARS = 20_000; // a longer text is folded
const SHOWN_CHARS = 4000; // of a folded text
const markdownNodes = new Map(); // by text: the newest ones, so that nothing is parsed twice
const MAX_MARKDOWN_NODES = 600;

/** Show markdown; a text that is too long to parse at once is shown as it is. */
export function markdownBlock(text, owner = text) {
  if (text.length > MAX_MARKDOWN_CHARS) return plainBlock(text);
  let node = markdownNodes.get(owner);
  if (!node || node.source !== text) {
    const element = document.createElement("div");
    element.className = "markdown";
    element.append(renderMarkdown(text));
    node = { source: text, element };
  }
  markdownNodes.delete(owner);
  markdownNodes.set(owner, node);
  if (markdownNodes.size > MAX_MARKDOWN_NODES) markdownNodes.delete(markdownNodes.keys().next().value);
  return node.element;
}

export function plainBlock(text) {
  return html`<pre class="plain" tabindex="0">${text}</pre>`;
}

/**
 * Show a text by `show`, of which only the beginning is shown until it is unfolded.
 *
 * `folds` is `{has, toggle}` of the keys of unfolded texts.
 */
export function foldable(text, key, folds, show) {
  if (text.length <= FOLD_CHARS) return show(text);
  const unfolded = folds.has(key);
  const label = unfolded ? "Show less" : `Show all ${formatNumber(text.length)} characters`;
  return html`${show(unfolded ? text : text.slice(0, SHOWN_CHARS))}
    <button type="button" class="unfold" aria-expanded=${unfolded} @click=${() => folds.toggle(key)}>${label}</button>`;
}

/** Show code in the colours of its language. */
export function codeBlock(text, language) {
  const pre = document.createElement("pre");
  pre.className = "code";
  pre.tabIndex = 0;
  const code = document.createElement("code");
  code.textContent = text;
  pre.append(code);
  if (language) import("../text/highlight.js").then((module) => module.highlightElement(code, language), () => {});
  return pre;
}

/**
 * Show images: those that are in the log, and links to those of other hosts.
 *
 * `api` tells the address of an image that is stored beside the log.
 */
export function imageBlocks(addresses, api) {
  return addresses.map((address) => {
    if (isSafeImage(address)) return html`<img class="shown" src=${address} alt="Image" loading="lazy" />`;
    if (/^blobs\/[0-9a-f]{64}$/.test(address)) {
      return html`<img class="shown" src=${api.blobPath(address)} alt="Image" loading="lazy" />`;
    }
    if (isSafeLink(address)) {
      return html`<p><a href=${address} target="_blank" rel="noopener noreferrer nofollow">Image at ${hostOf(address)}</a></p>`;
    }
    return html`<p class="quiet">An image that cannot be shown.</p>`;
  });
}

function hostOf(address) {
  try {
    return new URL(address).host;
  } catch {
    return "another host";
  }
}
