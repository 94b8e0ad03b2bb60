// A page as people write it: `useChat` in a React component, in a browser's document.
import { createRequire } from "node:module";
import { ai, complete, react } from "./client.mjs";

const require = createRequire(`${process.env.CHAT_CLIENTS}/package.json`);
const { JSDOM } = require("jsdom");

// React looks for its document when it is loaded.
const dom = new JSDOM("<!doctype html><body></body>", { url: "http://localhost:3000", pretendToBeVisual: true });
for (const name of ["window", "document", "navigator", "HTMLElement", "Element", "Node", "MutationObserver"]) {
  Object.defineProperty(globalThis, name, { value: name === "window" ? dom.window : dom.window[name], configurable: true, writable: true });
}
const { createElement: el, StrictMode, useState } = require("react");
const library = require("@testing-library/react");
library.configure({ asyncUtilTimeout: 30_000 });

function Tool({ part, decide }) {
  const asks = part.state === "approval-requested";
  const answer = (approved) => () => decide({ id: part.approval.id, approved });
  return el("div", { "data-tool": part.type.slice("tool-".length), "data-state": part.state },
    part.state === "output-available" ? JSON.stringify(part.output) : "",
    asks && el("button", { onClick: answer(true) }, "Allow"),
    asks && el("button", { onClick: answer(false) }, "Deny"));
}

function Page({ id, gateway, tools, resume, messages: known, ran }) {
  const [words, setWords] = useState("");
  const [transport] = useState(() => new ai.DefaultChatTransport({ api: `${gateway.url}/api/chat`, headers: gateway.user("ada") }));
  const { messages, sendMessage, status, error, stop, addToolApprovalResponse, ...chat } = react.useChat({
    id, transport, resume, messages: known,
    sendAutomaticallyWhen: complete,
    onToolCall: ({ toolCall }) => {
      const run = tools?.[toolCall.toolName];
      if (!run) return;
      ran.push(toolCall.toolName);
      const give = chat.addToolOutput ?? chat.addToolResult;
      // Not awaited: the client would wait for itself.
      give({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: run(toolCall.input) });
    },
  });
  const part = (part, at) =>
    part.type === "text" ? el("span", { key: at }, part.text)
    : part.type.startsWith("tool-") ? el(Tool, { key: at, part, decide: addToolApprovalResponse })
    : null;
  return el("main", { "data-status": status },
    error && el("p", { role: "alert" }, error.message),
    messages.map((message) => el("article", { key: message.id, "data-role": message.role, "data-id": message.id }, message.parts.map(part))),
    el("form", { onSubmit: (event) => { event.preventDefault(); sendMessage({ text: words }); setWords(""); } },
      el("input", { "aria-label": "Message", value: words, onChange: (event) => setWords(event.target.value) }),
      el("button", { type: "submit" }, "Send"),
      el("button", { type: "button", onClick: stop }, "Stop")));
}

// Opens the page, and gives a person's hands and eyes.
export function visit(gateway, { strict = false, ...props }) {
  const ran = [];
  const page = el(Page, { gateway, ran, ...props });
  const view = library.render(strict ? el(StrictMode, null, page) : page);
  const main = () => view.container.querySelector("main");
  return {
    ran,
    close: view.unmount,
    status: () => main().dataset.status,
    alert: () => view.queryByRole("alert")?.textContent,
    said: () => [...view.container.querySelectorAll("article")].map((article) => [article.dataset.role, [...article.querySelectorAll("span")].map((span) => span.textContent).join("")]),
    ids: () => [...view.container.querySelectorAll("article")].map((article) => article.dataset.id),
    tool: (name) => view.container.querySelector(`[data-tool="${name}"]`),
    press: async (name) => library.fireEvent.click(await view.findByRole("button", { name })),
    write: async (words) => {
      library.fireEvent.change(view.getByLabelText("Message"), { target: { value: words } });
      library.fireEvent.click(view.getByRole("button", { name: "Send" }));
    },
    sees: (fact, what) => library.waitFor(() => { if (!fact()) throw new Error(`${what ?? fact}: ${view.container.innerHTML.slice(0, 2000)}`); }),
  };
}

export const leave = () => dom.window.close();
