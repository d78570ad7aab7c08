// Markdown of models and users, which may be hostile, as nodes that can do nothing.
//
// Raw HTML is shown as text. Links lead to http, https and mailto alone. An image of another host
// becomes a link: the page sends no request anywhere else.

import { Marked } from "../vendor/marked/marked.esm.js";
import "../vendor/dompurify/purify.min.js";

const ALLOWED_TAGS = [
  ..."a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i img li ol p pre s".split(" "),
  ..."strong sub sup table tbody td th thead tr ul".split(" "),
];
const ALLOWED_ATTRIBUTES = ["href", "src", "alt", "title", "align", "class", "start"];
const SAFE_LINK = /^(?:https?:\/\/|mailto:)/i;
const SAFE_IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-z0-9+/=\s]*$/i;

export const MAX_MARKDOWN_CHARS = 100_000; // a longer text is shown as it is

const marked = new Marked({ gfm: true, breaks: true, async: false });
marked.use({
  renderer: {
    html({ text }) {
      return escapeHtml(text);
    },
    checkbox({ checked }) {
      return checked ? "☑ " : "☐ ";
    },
    image({ href, text, title }) {
      if (SAFE_IMAGE.test(href)) return `<img src="${escapeHtml(href)}" alt="${escapeHtml(text)}">`;
      const label = escapeHtml(text || title || href);
      return SAFE_LINK.test(href) ? `<a href="${escapeHtml(href)}">${label}</a>` : label;
    },
  },
});

const purify = globalThis.DOMPurify(window);
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName === "A") secureLink(node);
  if (node.nodeName === "IMG" && !SAFE_IMAGE.test(node.getAttribute("src") ?? "")) node.remove();
  if (node.hasAttribute?.("class") && !/^language-[\w+#-]{1,30}$/.test(node.className)) node.removeAttribute("class");
});

/** Turn markdown into a fragment of safe nodes. */
export function renderMarkdown(text) {
  const fragment = sanitize(marked.parse(text));
  for (const table of fragment.querySelectorAll("table")) wrapTable(table);
  for (const pre of fragment.querySelectorAll("pre")) pre.tabIndex = 0;
  const code = fragment.querySelectorAll("pre > code[class]");
  if (code.length) import("./highlight.js").then((module) => code.forEach(module.highlightByClass), () => {});
  return fragment;
}

/** Tell whether an address may be linked to. */
export function isSafeLink(address) {
  return SAFE_LINK.test(address);
}

/** Tell whether an address holds an image that may be shown. */
export function isSafeImage(address) {
  return SAFE_IMAGE.test(address);
}

function sanitize(dirty) {
  return purify.sanitize(dirty, {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ALLOWED_ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:|data:image\/(?:png|jpeg|gif|webp);base64,)/i,
    RETURN_DOM_FRAGMENT: true,
  });
}

function secureLink(link) {
  const address = link.getAttribute("href") ?? "";
  if (!SAFE_LINK.test(address)) {
    link.removeAttribute("href");
    return;
  }
  link.setAttribute("target", "_blank");
  link.setAttribute("rel", "noopener noreferrer nofollow");
}

/** Let a wide table scroll by itself. */
function wrapTable(table) {
  const wrap = document.createElement("div");
  wrap.className = "scroll-x";
  wrap.tabIndex = 0;
  wrap.setAttribute("role", "region");
  wrap.setAttribute("aria-label", "Table");
  table.replaceWith(wrap);
  wrap.append(table);
}

function escapeHtml(text) {
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => names[character]);
}
