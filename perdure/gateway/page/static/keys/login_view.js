// The view for who has not logged in.

import { html, nothing } from "../shell/html.js";
import { logIn } from "../wire/session.js";

/** A form for an API key, which the gateway turns into a session of this browser. */
export class LoginView {
  constructor(page, done, failure = "") {
    this.page = page;
    this.done = done;
    this.title = "Log in";
    this.failure = failure;
    this.busy = false;
    this.keys = [];
  }

  close() {}

  drawn() {
    if (!this.focused) document.getElementById("key")?.focus();
    this.focused = true;
  }

  template() {
    return html`<form class="login stacked" @submit=${(event) => this.#submit(event)}>
      <h1>Log in</h1>
      <p>Open the link that <code>perdure dev</code> prints, or enter an API key: <code>perdure key create</code> makes one.</p>
      <label for="key">API key</label>
      <input id="key" name="key" type="password" autocomplete="current-password" required />
      ${this.failure ? html`<p class="failure" role="alert">${this.failure}</p>` : nothing}
      <div class="buttons"><button type="submit" class="primary" ?disabled=${this.busy}>Log in</button></div>
    </form>`;
  }

  async #submit(event) {
    event.preventDefault();
    const field = event.target.elements.key;
    this.busy = true;
    this.failure = "";
    this.page.draw();
    try {
      await logIn({ key: field.value.trim() });
      this.busy = false;
      this.done();
    } catch (error) {
      this.busy = false;
      this.failure = error.sentence ?? error.message;
      this.page.draw();
    }
  }
}
