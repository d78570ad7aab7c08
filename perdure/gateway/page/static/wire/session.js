// The session of this browser at the gateway, whose cookie no script can read.

import { post } from "./api.js";

/** Begin a session by a `key`, or by a one-time `code`. Throws ApiError. */
export function logIn(fields) {
  return post("/v1/login", fields);
}

export function logOut() {
  return post("/v1/logout");
}

/**
 * Begin a session by the one-time code in the address, `#login=CODE`, and take it out of there.
 *
 * Returns the sentence about what went wrong; an empty text if nothing did, or there is no code.
 */
export async function logInByAddress() {
  const match = /^#login=(.+)$/.exec(location.hash);
  if (!match) return "";
  history.replaceState(null, "", location.pathname + location.search);
  try {
    await logIn({ code: decodeURIComponent(match[1]) });
    return "";
  } catch (error) {
    return error.status === 401 ? "This link was used before, or is too old." : (error.sentence ?? error.message);
  }
}
