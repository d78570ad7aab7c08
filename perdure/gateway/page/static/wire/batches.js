// The requests about batches.

import { get, post, put, remove, withQuery } from "./api.js";

/** Return a page of the list of batches. */
export function listBatches(cursor = null) {
  return get(withQuery("/v1/batches", { cursor, limit: 100 }));
}

/** Return a page of the batches that others share with the user. */
export function listSharedBatches(cursor = null) {
  return get(withQuery("/v1/shared/batches", { cursor, limit: 100 }));
}

/** The requests about one batch; `owner` is named if it is another user's. */
export class BatchApi {
  constructor(name, owner = null) {
    this.name = name;
    this.owner = owner;
  }

  path(rest = "", parameters = {}) {
    return withQuery(`/v1/batches/${encodeURIComponent(this.name)}${rest}`, { ...parameters, owner: this.owner });
  }

  load = () => get(this.path());
  summary = () => get(this.path("/summary"));
  results = (cursor, limit = 200) => get(this.path("/results", { cursor, limit }));
  compare = (other) => get(this.path("/comparison", { other }));
  pause = () => post(this.path("/pause"));
  resume = () => post(this.path("/resume"));
  retune = (limits) => post(this.path("/retune"), limits);
  retry = (mode) => post(this.path("/retry"), { mode });
  grants = () => get(this.path("/grants"));
  grant = (userId, access) => put(this.path(`/grants/${encodeURIComponent(userId)}`), { access });
  revoke = (userId) => remove(this.path(`/grants/${encodeURIComponent(userId)}`));
  get reportPath() {
    return this.path("/report");
  }
}
