// The real client of one version: the Chat that `useChat` is made of.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

export const version = Number(process.argv[2] ?? process.env.AI_SDK ?? "6");
const require = createRequire(`${process.env.CHAT_CLIENTS}/package.json`);
const load = async (name) => {
  const root = require.resolve(`${name}/package.json`);
  const { exports: to, module } = require(`${name}/package.json`);
  const entry = to["."];
  const file = typeof entry === "string" ? entry : (entry.import?.default ?? entry.import ?? entry.default ?? module);
  return import(pathToFileURL(root.replace("package.json", file)).href);
};
export const ai = await load(`ai-${version}`);
export const react = await load(`ai-react-${version}`);
const { Chat } = react;

export const complete = (options) =>
  ai.lastAssistantMessageIsCompleteWithToolCalls(options) ||
  (ai.lastAssistantMessageIsCompleteWithApprovalResponses?.(options) ?? false);

export function open(gateway, { id, headers, body, tools = {}, query = "", automatic = true, messages, last, onData, transport: given } = {}) {
  const api = `${gateway.url}/api/chat${query}`;
  const sent = [];
  const transport = given ?? new ai.DefaultChatTransport({
    api, headers: headers ?? gateway.user("ada"), body,
    fetch: async (url, init) => {
      sent.push({ url: String(url), method: init?.method ?? "GET", body: init?.body ? JSON.parse(init.body) : undefined });
      return fetch(url, init);
    },
    prepareReconnectToStreamRequest: ({ id: chat }) => ({ api: `${gateway.url}/api/chat/${encodeURIComponent(chat)}/stream${query}` }),
    ...(last ? { prepareSendMessagesRequest: ({ id: chat, messages: all, trigger, messageId }) => ({ body: { id: chat, message: all.at(-1), trigger, messageId } }) } : {}),
  });
  const ran = [];
  const errors = [];
  const chat = new Chat({
    id, transport, messages, onData,
    onError: (error) => errors.push(error.message),
    onToolCall: ({ toolCall }) => {
      const run = tools[toolCall.toolName];
      if (!run) return;
      ran.push(toolCall.toolName);
      // Not awaited: the client would wait for itself.
      Promise.resolve().then(() => run(toolCall.input, toolCall)).then(
        (output) => output !== undefined && chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output }),
        (error) => chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, state: "output-error", errorText: error.message }),
      );
    },
    sendAutomaticallyWhen: automatic ? complete : undefined,
  });
  if (!chat.addToolOutput) chat.addToolOutput = chat.addToolResult;
  return Object.assign(chat, { sent, ran, errors });
}

export const text = (message) => (message?.parts ?? []).filter((part) => part.type === "text").map((part) => part.text).join("");
export const tool = (message, name) => message.parts.find((part) => part.type === `tool-${name}`);
export const posts = (chat) => chat.sent.filter((request) => request.method === "POST").length;

// Waits for a fact, not for a time.
export async function until(fact, what = String(fact)) {
  for (let tries = 0; tries < 3000; tries++) {
    if (await fact()) return;
    await new Promise((on) => setTimeout(on, 10));
  }
  throw new Error(`it never came: ${what}`);
}

export const settled = (chat, done) =>
  until(() => (chat.status === "ready" && done()) || chat.status === "error", `status ${chat.status}: ${JSON.stringify(chat.messages).slice(0, 2000)} ${chat.errors}`);
