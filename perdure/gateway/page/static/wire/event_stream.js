// Server-sent events over `fetch`: unlike EventSource it tells the status, and hears the pings.

/**
 * A parser of server-sent events, fed with text in parts of any size.
 *
 * `push` returns the events that are complete, as `{event, data, id}`.
 */
export class EventParser {
  constructor() {
    this.rest = "";
    this.fields = { event: "", data: [], id: null };
  }

  push(text) {
    const events = [];
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        const { event, data, id } = this.fields;
        if (data.length) events.push({ event: event || "message", data: data.join("\n"), id });
        this.fields = { event: "", data: [], id };
      } else if (!line.startsWith(":")) {
        this.#field(line);
      }
    }
    return events;
  }

  #field(line) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.fields.data.push(value);
    else if (name === "event") this.fields.event = value;
    else if (name === "id") this.fields.id = value;
  }
}
