// The dialog in which a user shares a conversation, a batch or a discussion with others.

import { html, nothing } from "./html.js";
import { showDialog } from "./dialog.js";

/** Show who else may read or steer what the address leads to, and change it. */
export async function showShare(api, address) {
  let grants = null;
  let failure = "";
  const load = async (draw) => {
    try {
      grants = (await api.grants()).items;
    } catch (error) {
      failure = error.sentence ?? error.message;
    }
    draw();
  };
  const change = async (request, draw) => {
    failure = "";
    try {
      await request();
    } catch (error) {
      failure = error.sentence ?? error.message;
    }
    await load(draw);
  };
  return showDialog("Share", ({ draw }) => {
    if (grants === null && !failure) {
      grants = [];
      load(draw);
    }
    const submit = (event) => {
      event.preventDefault();
      const { user, access } = event.target.elements;
      change(() => api.grant(user.value.trim(), access.value), draw);
      event.target.reset();
    };
    return html`<p>Others find it at <code>${location.origin}${address}</code></p>
      <ul class="grants">
        ${(grants ?? []).map(
          (grant) =>
            html`<li>
              <b>${grant.user_id}</b> <span class="quiet">may ${grant.access === "write" ? "read and steer it" : "read it"}</span>
              <button type="button" aria-label=${`Take it back from ${grant.user_id}`} @click=${() => change(() => api.revoke(grant.user_id), draw)}>Take back</button>
            </li>`,
        )}
      </ul>
      <form @submit=${submit} class="stacked">
        <label for="share-user">User</label>
        <input id="share-user" name="user" required autocomplete="off" />
        <label for="share-access">May</label>
        <select id="share-access" name="access"><option value="read">read it</option><option value="write">read and steer it</option></select>
        <div class="buttons"><button type="submit" class="primary">Share</button></div>
        ${failure ? html`<p class="failure" role="alert">${failure}</p>` : nothing}
      </form>`;
  });
}
