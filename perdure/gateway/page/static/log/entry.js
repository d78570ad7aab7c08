// Entries of the log as the page reads them.

/**
 * Read an entry as the gateway sends it: the fields of the event beside `origin`, `usage`, `files`.
 *
 * Returns `{seq, event, origin, usage, files, raw}`.
 */
export function readEntry(raw, seq = raw.seq) {
  const { seq: _, origin = {}, usage = null, files = null, ...event } = raw;
  return { seq, event, origin, usage, files, raw };
}

/** Join the texts of content parts. */
export function joinText(content) {
  return (content ?? [])
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n");
}

/** List the addresses of the images in content parts. */
export function listImages(content) {
  return (content ?? []).filter((part) => part.type === "image").flatMap((part) => part.image_urls);
}

/** Return the model's reasoning, wherever its provider puts it. */
export function reasoningOf(message) {
  if (message.reasoning_content) return message.reasoning_content;
  const thoughts = (message.thinking_blocks ?? []).map((block) => block.thinking ?? "");
  return thoughts.filter(Boolean).join("\n");
}
