// Addresses of workflows in Temporal's UI.

const DEFAULT_USER = "local"; // the ids of whose workflows have no user

/** Return the id of a conversation's workflow. */
export function workflowId(owner, conversationId) {
  return owner === DEFAULT_USER ? `conv-${conversationId}` : `conv-${owner}:${conversationId}`;
}

/** Return the address of a conversation's workflow below that of all workflows; null without. */
export function workflowAddress(workflowsUrl, { owner, id }) {
  if (!/^https?:\/\//.test(workflowsUrl)) return null;
  return `${workflowsUrl}/${encodeURIComponent(workflowId(owner, id))}`;
}
