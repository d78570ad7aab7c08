// The page: who is logged in, which view is open, and the frame around it.

import { html, nothing, render } from "./shell/html.js";
import { oncePerFrame } from "./shell/frame.js";
import { Lazy, preload } from "./shell/lazy.js";
import { Keyboard } from "./shell/keyboard.js";
import { Router } from "./shell/router.js";
import { get, setUnauthorizedHandler } from "./wire/api.js";
import { logInByAddress, logOut } from "./wire/session.js";
import { workflowAddress } from "./wire/workflows.js";

const VIEWS = {
  list: async (page) => new (await import("./list/view.js")).ListView(page),
  new: async (page) => new (await import("./compose/new_view.js")).NewView(page),
  conversation: async (page, route) => new (await import("./conversation/view.js")).ConversationView(page, route),
  batches: async (page) => new (await import("./batches/list_view.js")).BatchesView(page),
  batch: async (page, route) => new (await import("./batches/batch_view.js")).BatchView(page, route),
  discussions: async (page) => new (await import("./discussions/list_view.js")).DiscussionsView(page),
  discussion: async (page, route) => new (await import("./discussions/view.js")).DiscussionView(page, route),
  schedules: async (page) => new (await import("./schedules/view.js")).SchedulesView(page),
  webhooks: async (page) => new (await import("./webhooks/view.js")).WebhooksView(page),
  agents: async (page) => new (await import("./agents/view.js")).AgentsView(page),
  memory: async (page) => new (await import("./memory/view.js")).MemoryView(page),
  keys: async (page) => new (await import("./keys/view.js")).KeysView(page),
};

const HELP = new Lazy(() => import("./shell/help.js"));

const LINKS = [
  ["/", "Conversations", ["list", "conversation", "new"]],
  ["/batches", "Batches", ["batches", "batch"]],
  ["/discussions", "Discussions", ["discussions", "discussion"]],
  ["/schedules", "Schedules", ["schedules"]],
  ["/webhooks", "Webhooks", ["webhooks"]],
  ["/agents", "Agents", ["agents"]],
  ["/memory", "Memory", ["memory"]],
  ["/keys", "Keys", ["keys"]],
];

/** The page with its open view. */
class Page {
  constructor(root) {
    this.root = root;
    this.view = null;
    this.viewName = null;
    this.me = null;
    this.failure = "";
    this.draw = oncePerFrame(() => this.drawNow());
    this.keyboard = new Keyboard([
      { keys: ["?"], label: "Show the keys", run: () => this.#help() },
      { keys: ["l"], label: "Conversations", run: () => this.go("/") },
      { keys: ["n"], label: "New conversation", run: () => this.may("write") && this.go("/new") },
      { keys: ["b"], label: "Batches", run: () => this.go("/batches") },
      { keys: ["d"], label: "Discussions", run: () => this.go("/discussions") },
      { keys: ["S"], label: "Schedules", run: () => this.go("/schedules") },
      { keys: ["H"], label: "Webhooks", run: () => this.go("/webhooks") },
      { keys: ["A"], label: "Agents", run: () => this.go("/agents") },
      { keys: ["M"], label: "Memory", run: () => this.go("/memory") },
      { keys: ["K"], label: "Keys", run: () => this.go("/keys") },
      { keys: ["Escape"], label: "Leave the field", inFields: true, run: () => document.activeElement?.blur() },
    ]);
    this.router = new Router((route) => this.#open(route));
    setUnauthorizedHandler(() => this.me && this.#showLogin());
  }

  async start() {
    const failure = await logInByAddress();
    try {
      this.me = await get("/v1/me");
    } catch (error) {
      if (error.status === 401) return this.#showLogin(failure);
      this.failure = error.sentence ?? error.message;
      this.draw();
      return;
    }
    this.router.refresh();
  }

  async #help() {
    (await HELP.get()).showHelp(this.keyboard.groups());
  }

  go(path) {
    this.router.go(path);
  }

  /** Tell whether the user may do what needs a scope. */
  may(scope) {
    return this.me?.scopes.includes(scope) ?? false;
  }

  /** Return the address of a conversation's workflow in Temporal's UI; null where there is none. */
  workflowUrl(info) {
    return workflowAddress(document.querySelector("meta[name=workflows-url]").content, info);
  }

  async #open(route) {
    if (!this.me) return;
    const name = route?.view ?? "list";
    if (this.view && this.viewName === name && this.view.update?.(route)) return;
    this.#leave();
    const opening = (this.opening = {});
    try {
      const view = await VIEWS[name](this, route ?? { query: new URLSearchParams(), hash: "" });
      if (this.opening !== opening) return view.close();
      this.#show(name, view);
    } catch (error) {
      this.failure = `This view cannot be loaded: ${error.message}. Reload the page.`;
      this.draw();
    }
  }

  #leave() {
    this.view?.close();
    this.view = null;
    this.keyboard.viewBindings = [];
  }

  #show(name, view) {
    this.viewName = name;
    this.view = view;
    this.failure = "";
    this.keyboard.viewBindings = view.keys;
    this.drawNow();
    window.scrollTo(0, 0);
    // On a phone the links of the navigation are wider than the screen.
    this.root.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    preload(HELP);
  }

  async #showLogin(failure = "") {
    if (this.viewName === "login") return;
    this.viewName = "login";
    this.me = null;
    this.#leave();
    const { LoginView } = await import("./keys/login_view.js");
    this.#show("login", new LoginView(this, () => this.#loggedIn(), failure));
  }

  async #loggedIn() {
    this.viewName = null;
    await this.start();
  }

  async #logOut() {
    await logOut().catch(() => {});
    this.#showLogin();
  }

  drawNow() {
    const { view } = this;
    const paint = () => render(this.#template(), this.root);
    if (view?.around) view.around(paint);
    else paint();
    document.title = view ? `${view.title} · perdure` : "perdure";
    view?.drawn?.();
  }

  #template() {
    const fixed = this.viewName === "conversation";
    return html`<a class="skip" href="#main">Skip to the content</a>
      <header class="bar">
        <a class="brand" href="/">perdure</a>
        ${this.me ? this.#navigation() : nothing}
      </header>
      <main id="main" class=${fixed ? "fixed" : ""} tabindex="-1">
        ${this.failure ? html`<p class="failure centered" role="alert">${this.failure}</p>` : nothing} ${this.view?.template() ?? nothing}
      </main>`;
  }

  #navigation() {
    return html`<nav aria-label="Main">
        ${LINKS.map(([path, label, views]) => html`<a href=${path} aria-current=${views.includes(this.viewName) ? "page" : nothing}>${label}</a>`)}
      </nav>
      <span class="who">${this.me.user_id}</span>
      <button type="button" class="plain" aria-label="Keys of the keyboard" title="Keys of the keyboard" @click=${() => this.#help()}>?</button>
      <button type="button" class="plain" @click=${() => this.#logOut()}>Log out</button>`;
  }
}

new Page(document.getElementById("page")).start();
