// Colours of code, whose library and languages are loaded when there is code to colour.

const LANGUAGES = new Set(
  "bash c cpp css diff go ini java javascript json markdown python rust sql typescript xml yaml".split(" "),
);
const ALIASES = {
  ...{ sh: "bash", shell: "bash", zsh: "bash", console: "bash", "c++": "cpp", html: "xml", svg: "xml" },
  ...{ js: "javascript", jsx: "javascript", ts: "typescript", tsx: "typescript", py: "python" },
  ...{ md: "markdown", patch: "diff", rs: "rust", toml: "ini", yml: "yaml", golang: "go" },
};
const EXTENSIONS = { h: "c", cc: "cpp", hpp: "cpp", htm: "xml" };
const MAX_CHARS = 40_000;

let library = null;

/** Return the language of a name such as `py`; null if it has no colours here. */
export function findLanguage(name) {
  const lower = name.toLowerCase();
  const language = ALIASES[lower] ?? EXTENSIONS[lower] ?? lower;
  return LANGUAGES.has(language) ? language : null;
}

/** Colour code by its class, such as `language-py`. */
export function highlightByClass(code) {
  const language = findLanguage(/^language-(.+)$/.exec(code.className)?.[1] ?? "");
  if (language) highlightElement(code, language);
}

/** Colour the text of an element, unless it is too long. */
export async function highlightElement(element, language) {
  const text = element.textContent;
  if (text.length > MAX_CHARS) return;
  try {
    const hljs = await loadLanguage(language);
    if (element.textContent !== text) return;
    element.replaceChildren(...toNodes(hljs.highlight(text, { language })._emitter.rootNode));
  } catch {
    // The code is readable without colours.
  }
}

async function loadLanguage(language) {
  library ??= import("../vendor/highlight/core.min.js").then((module) => module.default);
  const hljs = await library;
  if (!hljs.getLanguage(language)) {
    const grammar = await import(`../vendor/highlight/languages/${language}.min.js`);
    hljs.registerLanguage(language, grammar.default);
  }
  return hljs;
}

/** Build nodes from the library's tree: text stays text, whatever it says. */
function toNodes(node) {
  return (node.children ?? []).map((child) => {
    if (typeof child === "string") return document.createTextNode(child);
    const span = document.createElement("span");
    if (child.scope) span.className = `hl-${child.scope.split(".")[0].replace(/[^\w-]/g, "")}`;
    span.append(...toNodes(child));
    return span;
  });
}
