// Requests to the gateway: JSON in, JSON out, and errors as the gateway explains them.

/** An error of the gateway, or of the way to it: then `status` is 0. */
export class ApiError extends Error {
  constructor(status, code, detail, hint = "", retryAfter = null) {
    super(detail);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.retryAfter = retryAfter;
  }

  /** The sentences for people. */
  get sentence() {
    return this.hint ? `${this.message} ${this.hint}` : this.message;
  }
}

let onUnauthorized = () => {};

/** Set what happens when the gateway does not know who asks. */
export function setUnauthorizedHandler(handler) {
  onUnauthorized = handler;
}

/** Build a path with a query; parameters that are null or undefined are left out. */
export function withQuery(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** Send a request and return its response. Throws ApiError. */
export async function send(method, path, { body, signal, headers = {} } = {}) {
  const options = { method, signal, headers: { ...headers }, credentials: "same-origin" };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The gateway does not answer.", "It is asked again when the network is back.");
  }
  if (response.ok) return response;
  const problem = await readProblem(response);
  if (response.status === 401) onUnauthorized(problem);
  throw problem;
}

/** Send a request and return the JSON of its response; null without content. Throws ApiError. */
export async function request(method, path, options) {
  const response = await send(method, path, options);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

export const get = (path, options) => request("GET", path, options);
export const post = (path, body = undefined, options = {}) => request("POST", path, { ...options, body });
export const patch = (path, body) => request("PATCH", path, { body });
export const put = (path, body) => request("PUT", path, { body });
export const remove = (path) => request("DELETE", path);

async function readProblem(response) {
  const retryAfter = Number(response.headers.get("Retry-After")) || null;
  try {
    const problem = await response.json();
    const detail = problem.detail ?? problem.title ?? response.statusText;
    const hint = [problem.hint, ...(problem.errors ?? [])].filter(Boolean).join(" ");
    return new ApiError(response.status, problem.code ?? "", detail, hint, retryAfter);
  } catch {
    const detail = `The gateway answered ${response.status} ${response.statusText}`.trim();
    return new ApiError(response.status, "", `${detail}.`, "", retryAfter);
  }
}
