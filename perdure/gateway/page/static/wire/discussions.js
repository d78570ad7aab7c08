// The requests about discussions.

import { get, post, put, remove, withQuery } from "./api.js";

/** Return a page of the list of discussions. */
export function listDiscussions(cursor = null) {
  return get(withQuery("/v1/discussions", { cursor, limit: 50 }));
}

/** Return a page of the discussions that others share with the user. */
export function listSharedDiscussions(cursor = null) {
  return get(withQuery("/v1/shared/discussions", { cursor, limit: 50 }));
}

/** The requests about one discussion; `owner` is named if it is another user's. */
export class DiscussionApi {
  constructor(id, owner = null) {
    this.id = id;
    this.owner = owner;
  }

  path(rest = "", parameters = {}) {
    return withQuery(`/v1/discussions/${encodeURIComponent(this.id)}${rest}`, { ...parameters, owner: this.owner });
  }

  load = () => get(this.path());
  spec = () => get(this.path("/spec"));
  streamPath = (after) => this.path("/stream", { after });
  exportPath = (format) => this.path("/export", { format });
  say = (text, id) => post(this.path("/say"), { text, id });
  vote = (ballot, reason, id) => post(this.path("/vote"), { ballot, id, ...(reason ? { reason } : {}) });
  pause = () => post(this.path("/pause"));
  resume = () => post(this.path("/resume"));
  close = () => post(this.path("/close"));
  grants = () => get(this.path("/grants"));
  grant = (userId, access) => put(this.path(`/grants/${encodeURIComponent(userId)}`), { access });
  revoke = (userId) => remove(this.path(`/grants/${encodeURIComponent(userId)}`));
}
