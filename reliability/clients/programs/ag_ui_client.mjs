// `ag_ui_client.mjs PACKAGES URL KEY SECONDS SEED`: conversations with AG-UI's own client, through a gateway.
//
// A run that breaks is run again without a new message, until it has ended: the client is told the rest.

import { createRequire } from "node:module";

const [packages, url, key, seconds, seed] = process.argv.slice(2);
const { HttpAgent } = createRequire(`${packages}/`)("@ag-ui/client");

const TURNS = 3;
const AGENTS = 8;
const PAUSE = 300;
const PASSING = ["unreachable", "store_unavailable", "timed_out"];

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));

// A connection that breaks in mid-stream rejects the run, and a promise of the client's that nobody has.
process.on("unhandledRejection", (error) => {
  if (!/terminated|fetch failed/.test(String(error))) throw error;
});

// Returns numbers below a limit, which follow from the seed.
function makeChance(text) {
  let state = [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7);
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % limit;
  };
}

function open(name, threadId) {
  return new HttpAgent({ url: `${url}/ag-ui/${name}`, threadId, headers: { Authorization: `Bearer ${key}` } });
}

// Runs an agent until it has ended, and returns its last event.
async function run(agent, account) {
  for (;;) {
    let last;
    try {
      await agent.runAgent({}, { onEvent: ({ event }) => (last = event) });
    } catch (error) {
      if (last === undefined && /HTTP 4(?!29)/.test(String(error.message))) throw error;
      if (String(error.message).includes("Cannot send")) throw error; // the client's own verdict on an event
    }
    if (last?.type === "RUN_FINISHED") return last;
    if (last?.type === "RUN_ERROR" && !PASSING.includes(last.code)) throw new Error(JSON.stringify(last));
    account.repeats += 1;
    await wait(PAUSE);
  }
}

// What a model that was asked again has said last: what was sent of its first try stays before it.
const newest = (text) => (text ?? "").split("\n").at(-1);

function spokenBy(agent) {
  return agent.messages.filter((message) => message.role === "assistant" && message.content);
}

function findFaults(agent) {
  const faults = [];
  const ids = agent.messages.map((message) => message.id);
  if (new Set(ids).size !== ids.length) faults.push("a message is there twice");
  const calls = agent.messages.flatMap((message) => message.toolCalls ?? []).map((call) => call.id);
  const results = agent.messages.filter((message) => message.role === "tool").map((each) => each.toolCallId);
  if (new Set(results).size !== results.length) faults.push("a result is there twice");
  if ([...calls].sort().join() !== [...results].sort().join()) faults.push("calls and results differ");
  return faults;
}

async function talk(chance) {
  const agent = open(`following-${chance(AGENTS)}`, crypto.randomUUID());
  const account = { id: agent.threadId, sent: {}, answers: [], repeats: 0, faults: [] };
  const name = agent.url.split("/").at(-1);
  for (let turn = 0; turn < TURNS; turn += 1) {
    const text = `Message ${turn} of ${account.id}.`;
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content: text });
    account.sent[text] = 1;
    const { outcome } = await run(agent, account);
    if (outcome.type !== "success") account.faults.push(`turn ${turn} ends ${outcome.type}`);
    account.answers.push(newest(spokenBy(agent).at(-1)?.content));
  }
  const reloaded = open(name, agent.threadId);
  await run(reloaded, account);
  account.faults.push(...findFaults(agent), ...findFaults(reloaded));
  const [streamed, told] = [agent, reloaded].map((each) => spokenBy(each).map(({ content }) => newest(content)));
  if (streamed.join("|") !== told.join("|")) account.faults.push(`it was told ${told} in place of ${streamed}`);
  account.faults.push(...warnings.splice(0));
  return account;
}

const end = Date.now() + Number(seconds) * 1000;
const chance = makeChance(`ag-ui ${seed}`);
while (Date.now() < end) {
  try {
    console.log(`ACCOUNT ${JSON.stringify(await talk(chance))}`);
  } catch (error) {
    console.log(`FINDING ${String(error.stack ?? error).replaceAll("\n", " ")}`);
  }
}
process.exit(0);
