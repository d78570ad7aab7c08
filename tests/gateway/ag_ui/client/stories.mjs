// Stories of a program with AG-UI's own client, unmodified, against our gateway: STORY URL KEY [OTHER KEY].
// Each prints what it has seen as JSON. The client itself checks the order of events, and refuses a wrong one.

import { HttpAgent, buildResumeArray } from "@ag-ui/client";

const [story, url, key, other] = process.argv.slice(1);

const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));

function open(name, threadId, more = {}) {
  const headers = { Authorization: `Bearer ${more.key ?? key}` };
  return new HttpAgent({ url: `${url}/ag-ui/${name}`, threadId, headers });
}

// Runs an agent, and returns the events with the end of the run.
async function run(agent, parameters = {}, onEvent = () => {}) {
  const events = [];
  const listener = {
    onEvent: ({ event }) => {
      events.push(event);
      onEvent(event);
    },
  };
  try {
    const { newMessages } = await agent.runAgent(parameters, listener);
    return { events, newMessages };
  } catch (error) {
    return { events, error: String(error.message ?? error) };
  }
}

function say(agent, text, id = crypto.randomUUID()) {
  agent.addMessage({ id, role: "user", content: text });
}

const types = (events) => events.map((event) => event.type);
const has = (events, type) => types(events).includes(type);
const outcome = (events) => events.at(-1)?.outcome?.type ?? events.at(-1)?.type;
const wait = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

async function post(path, body = {}) {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  return fetch(`${url}/v1/conversations/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

const stories = {
  // A turn with words, reasoning, a tool and its result; then another one; then a client that has nothing.
  async turns() {
    const agent = open("adder");
    say(agent, "2 + 3?");
    const first = await run(agent);
    say(agent, "And then?");
    const second = await run(agent);
    const reloaded = open("adder", agent.threadId);
    const third = await run(reloaded);
    return {
      types: types(first.events),
      texts: agent.messages.map((message) => message.content ?? ""),
      roles: agent.messages.map((message) => message.role),
      called: agent.messages.flatMap((message) => message.toolCalls ?? []).map((call) => call.function.name),
      told: [first, second, third].map((each) => has(each.events, "MESSAGES_SNAPSHOT")),
      errors: [first, second, third].map((each) => each.error ?? null),
      messages: [agent.messages, reloaded.messages],
      state: agent.state,
      threadId: agent.threadId,
    };
  },

  // A client that aborts in mid-sentence comes back, and has each word once.
  async lost() {
    const agent = open("speaker");
    say(agent, "Will you be lost?");
    const cut = await run(agent, {}, (event) => {
      if (event.type === "TEXT_MESSAGE_CONTENT") agent.abortRun();
    });
    const half = agent.messages.at(-1).content;
    const again = await run(agent);
    return {
      half,
      cut: types(cut.events).at(-1),
      texts: agent.messages.map((message) => message.content),
      end: outcome(again.events),
      error: again.error ?? null,
    };
  },

  // What waits for a person is answered by name; without an answer the client does not run on.
  async interrupts() {
    const agent = open("asker");
    say(agent, "2 + 3?");
    const first = await run(agent);
    const pending = agent.pendingInterrupts;
    const refused = await run(agent);
    const reloaded = open("asker", agent.threadId);
    await run(reloaded);
    const decisions = [{ approved: true }, { approved: false, reason: "Too easy." }];
    const responses = Object.fromEntries(
      pending.map(({ id }, number) => [id, { status: "resolved", payload: decisions[number] }]),
    );
    const second = await run(agent, { resume: buildResumeArray(pending, responses) });
    return {
      first: outcome(first.events),
      pending: pending.map(({ reason, message }) => [reason, message]),
      reloaded: reloaded.pendingInterrupts.length,
      refused: refused.error,
      second: outcome(second.events),
      left: agent.pendingInterrupts.length,
      results: agent.messages.filter((each) => each.role === "tool").map((each) => each.content),
      calls: agent.messages.flatMap((message) => message.toolCalls ?? []).length,
      said: agent.messages.at(-1).content,
      error: second.error ?? null,
    };
  },

  // Everything was cancelled: the agent is told, and goes on.
  async cancelled() {
    const agent = open("asker");
    say(agent, "2 + 3?");
    await run(agent);
    const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "cancelled" }));
    const { events, error } = await run(agent, { resume });
    return { end: outcome(events), said: agent.messages.at(-1).content, error: error ?? null };
  },

  // Two clients of one thread: the second one joins the run, a message of its own is refused meanwhile.
  async together() {
    const agent = open("sleeper");
    say(agent, "Sleep.");
    const running = run(agent);
    while ((await (await fetchStatus(agent.threadId)).json()).status?.status !== "running") await wait(0.1);
    const joined = open("sleeper", agent.threadId);
    const joining = run(joined);
    const eager = open("sleeper", agent.threadId);
    say(eager, "Wake up.");
    const refused = await run(eager);
    await wait(0.5);
    await post(`${agent.threadId}/interrupt`);
    const [first, second] = await Promise.all([running, joining]);
    return {
      ends: [outcome(first.events), outcome(second.events)],
      refused: refused.error,
      texts: joined.messages.map((message) => message.content),
      status: joined.state.status,
    };
  },

  // A failed turn rejects nothing and says why; so does what is refused.
  async failed() {
    const agent = open("broken");
    say(agent, "Break.");
    const { events, error } = await run(agent);
    const unknown = open("nobody");
    say(unknown, "Hello?");
    const stranger = open("adder", undefined, { key: "none" });
    say(stranger, "Hello?");
    const tools = [{ name: "alert", description: "Shows it.", parameters: {} }];
    const armed = open("adder");
    say(armed, "Hello?");
    return {
      last: events.at(-1),
      error: error ?? null,
      unknown: (await run(unknown)).error,
      stranger: (await run(stranger)).error,
      tools: (await run(armed, { tools })).error,
    };
  },

  // Another user with the same thread has a conversation of his own.
  async strangers() {
    const agent = open("adder");
    say(agent, "A secret.");
    await run(agent);
    const ben = open("adder", agent.threadId, { key: other });
    const { events } = await run(ben);
    return { messages: ben.messages, end: outcome(events) };
  },
};

function fetchStatus(threadId) {
  const headers = { Authorization: `Bearer ${key}` };
  return fetch(`${url}/v1/conversations/${threadId}`, { headers });
}

const seen = await stories[story]();
console.log(`SEEN ${JSON.stringify({ ...seen, warnings })}`);
process.exit(0);
