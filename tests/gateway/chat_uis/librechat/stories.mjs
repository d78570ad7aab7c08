// LibreChat's own packages, as its server uses them for a custom endpoint: what they see is printed as JSON.
//
// node stories.mjs STORY GATEWAY KEY CHAT

import {
  createContentAggregator, formatAgentMessages, GraphEvents, ModelEndHandler, Providers, Run,
} from "@librechat/agents";
import { configSchema } from "librechat-data-provider";

const [story, gateway, key, chat] = process.argv.slice(-4);

const SHOWN = [
  GraphEvents.ON_RUN_STEP, GraphEvents.ON_RUN_STEP_DELTA, GraphEvents.ON_RUN_STEP_COMPLETED,
  GraphEvents.ON_MESSAGE_DELTA, GraphEvents.ON_REASONING_DELTA,
];

/** Says the newest message of a history, and returns what the page shows: parts, and how often it grew. */
async function say(model, history, { name = chat, instructions } = {}) {
  const { contentParts, aggregateContent } = createContentAggregator();
  const usage = [], grown = [];
  const show = (event) => ({
    handle: (_, data) => {
      if (event === GraphEvents.ON_MESSAGE_DELTA) grown.push(data);
      aggregateContent({ event, data });
    },
  });
  const runId = crypto.randomUUID();
  const run = await Run.create({
    runId,
    graphConfig: {
      type: "standard",
      instructions,
      llmConfig: {
        provider: Providers.OPENAI, model, apiKey: key, streaming: true, streamUsage: true, user: "anna",
        maxRetries: 0,
        configuration: {
          baseURL: `${gateway}/openai/v1`, defaultHeaders: { "X-Conversation-Id": name },
        },
      },
    },
    returnContent: true,
    customHandlers: {
      [GraphEvents.CHAT_MODEL_END]: new ModelEndHandler(usage),
      ...Object.fromEntries(SHOWN.map((event) => [event, show(event)])),
    },
  });
  const { messages } = formatAgentMessages(history);
  const options = { runId, streamMode: "values", version: "v2", configurable: { thread_id: name } };
  await run.processStream({ messages }, options);
  return { parts: contentParts.filter(Boolean), grown: grown.length, usage };
}

const user = (content) => ({ role: "user", content });
const assistant = ({ parts }) => ({ role: "assistant", content: parts });

const stories = {
  async talk() {
    const history = [user("2 + 3?")];
    const first = await say("adder", history, { instructions: "Be brief." });
    history.push(assistant(first), user("And then?"));
    const second = await say("adder", history, { instructions: "Be brief." });
    return { first: first.parts, second: second.parts, usage: first.usage[0] ?? null };
  },

  async grow() {
    return await say("speaker", [user("Count.")]);
  },

  /** Its first message has no name yet: the chat is named when it has been answered. */
  async unnamed() {
    const history = [user("2 + 3?")];
    const first = await say("adder", history, { name: "new" });
    history.push(assistant(first), user("And then?"));
    return { first: first.parts, second: (await say("adder", history)).parts };
  },

  async wait() {
    return await say("asker", [user("Add.")]);
  },

  async fail() {
    try {
      await say("broken", [user("Go on.")]);
      return { error: null };
    } catch (error) {
      return { error: error.message };
    }
  },

  /** The endpoint of docs/clients/openai.md, as `chat` has it in JSON, in LibreChat's configuration. */
  async configure() {
    const config = { version: "1.2.8", endpoints: { custom: [JSON.parse(chat)] } };
    const { success, data, error } = configSchema.strict().safeParse(config);
    return { success, endpoint: data?.endpoints.custom[0], error: error?.message };
  },
};

console.log("SEEN " + JSON.stringify(await stories[story]()));
process.exit(0);
