// The requests about conversations.

import { get, patch, post, put, remove, withQuery } from "./api.js";

const NEWEST = Number.MAX_SAFE_INTEGER;

/** Return a page of the list of conversations. */
export function listConversations({ cursor = null, limit = 50, ...filters } = {}) {
  return get(withQuery("/v1/conversations", { cursor, limit, ...filters }));
}

/** Return a page of the conversations that others share with the user. */
export function listShared({ cursor = null, limit = 100 } = {}) {
  return get(withQuery("/v1/shared", { cursor, limit }));
}

/** Start a conversation. */
export function startConversation(fields) {
  return post("/v1/conversations", fields);
}

/** The requests about one conversation; `owner` is named if it is another user's. */
export class ConversationApi {
  constructor(id, owner = null) {
    this.id = id;
    this.owner = owner;
  }

  path(rest = "", parameters = {}) {
    const path = `/v1/conversations/${encodeURIComponent(this.id)}${rest}`;
    return withQuery(path, { ...parameters, owner: this.owner });
  }

  load = () => get(this.path());
  newest = (limit) => get(this.path("/events", { before_seq: NEWEST, limit }));
  before = (seq, limit) => get(this.path("/events", { before_seq: seq, limit }));
  after = (seq, limit) => get(this.path("/events", { after_seq: seq, limit }));
  streamPath = (afterSeq) => this.path("/stream", { after_seq: afterSeq });

  /** Send a message; with `reopen` it opens a closed conversation again. */
  send = (text, images = [], reopen = false) => post(this.path("/messages"), { text, images, reopen, message_id: crypto.randomUUID() });
  pause = () => post(this.path("/pause"));
  resume = () => post(this.path("/resume"));
  interrupt = () => post(this.path("/interrupt"));
  close = () => post(this.path("/close"));
  reopen = () => post(this.path("/reopen"));
  condense = () => post(this.path("/condense"));
  answerQuestion = (call, fields) => post(this.path("/answer"), { call, ...fields });
  respond = (accept, calls, reason = "") => post(this.path("/respond"), { accept, calls, reason });
  fork = (at, model = null) => post(this.path("/fork"), { at, model });
  ask = (question) => post(this.path("/ask"), { question });
  note = (fields) => patch(this.path(), fields);
  hide = () => remove(this.path());

  files = (seq) => get(this.path("/files", { at: seq }));
  filePath = (path, seq) => this.path(`/files/${path.split("/").map(encodeURIComponent).join("/")}`, { at: seq });
  diff = (afterSeq, throughSeq) => get(this.path("/diff", { after_seq: afterSeq, through_seq: throughSeq }));

  grants = () => get(this.path("/grants"));
  grant = (userId, access) => put(this.path(`/grants/${encodeURIComponent(userId)}`), { access });
  revoke = (userId) => remove(this.path(`/grants/${encodeURIComponent(userId)}`));

  /** Return the address of a blob of the conversation, whose key is `blobs/{sha256}`. */
  blobPath = (key) => this.path(`/${key}`);
  exportPath = (format) => this.path("/export", { format });
}
