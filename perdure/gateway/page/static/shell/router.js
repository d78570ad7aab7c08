// Addresses of the page: a view for each, and moves between them without loading the page anew.

const ROUTES = [
  [/^\/$/, "list"],
  [/^\/new$/, "new"],
  [/^\/conversations\/([^/]+)$/, "conversation"],
  [/^\/batches$/, "batches"],
  [/^\/batches\/([^/]+)$/, "batch"],
  [/^\/discussions$/, "discussions"],
  [/^\/discussions\/([^/]+)$/, "discussion"],
  [/^\/schedules$/, "schedules"],
  [/^\/webhooks$/, "webhooks"],
  [/^\/agents$/, "agents"],
  [/^\/memory$/, "memory"],
  [/^\/keys$/, "keys"],
];

/** Return the view and its parameters for an address; null for an address of no view. */
export function matchRoute(path, search = "", hash = "") {
  for (const [pattern, view] of ROUTES) {
    const match = pattern.exec(path);
    if (match) {
      const id = match[1] === undefined ? null : decodeURIComponent(match[1]);
      return { view, id, query: new URLSearchParams(search), hash };
    }
  }
  return null;
}

/** Return the address of a conversation; `owner` is named if it is another user's. */
export function conversationPath(id, owner = null, seq = null) {
  const query = owner ? `?owner=${encodeURIComponent(owner)}` : "";
  const hash = seq === null ? "" : `#seq-${seq}`;
  return `/conversations/${encodeURIComponent(id)}${query}${hash}`;
}

/** Return the address of a batch; `owner` is named if it is another user's. */
export function batchPath(name, owner = null) {
  return `/batches/${encodeURIComponent(name)}${owner ? `?owner=${encodeURIComponent(owner)}` : ""}`;
}

/** Return the address of a discussion; `owner` is named if it is another user's. */
export function discussionPath(id, owner = null) {
  return `/discussions/${encodeURIComponent(id)}${owner ? `?owner=${encodeURIComponent(owner)}` : ""}`;
}

/** Return the slot that a hash such as `#seq-42` names, or null. */
export function parseSeqHash(hash) {
  const match = /^#seq-(\d{1,15})$/.exec(hash);
  return match ? Number(match[1]) : null;
}

/** Calls `open` with the route of the address, now and whenever it changes. */
export class Router {
  constructor(open) {
    this.open = open;
    addEventListener("popstate", () => this.refresh());
    document.addEventListener("click", (event) => this.#click(event));
  }

  refresh() {
    this.open(matchRoute(location.pathname, location.search, location.hash));
  }

  /** Go to an address of the page. */
  go(path) {
    if (path !== location.pathname + location.search + location.hash) history.pushState(null, "", path);
    this.refresh();
  }

  /** Take over plain clicks on links to views of the page. */
  #click(event) {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target.closest?.("a[href]");
    if (!link || link.target || link.origin !== location.origin || link.hasAttribute("download")) return;
    if (!matchRoute(link.pathname)) return;
    event.preventDefault();
    this.go(link.pathname + link.search + link.hash);
  }
}
