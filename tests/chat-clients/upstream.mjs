// The only fake: a model that speaks the OpenAI chat format and follows a script.
import http from "node:http";

export class Upstream {
  // Each entry answers one request, in order.
  #script = [];
  requests = [];

  static async start() {
    const upstream = new Upstream();
    upstream.server = http.createServer((request, response) => upstream.#answer(request, response));
    await new Promise((ready) => upstream.server.listen(0, "127.0.0.1", ready));
    upstream.url = `http://127.0.0.1:${upstream.server.address().port}/v1`;
    return upstream;
  }

  script(...replies) {
    this.#script = replies;
    this.requests = [];
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async #answer(request, response) {
    let body = "";
    for await (const piece of request) body += piece;
    this.requests.push(JSON.parse(body));
    const reply = this.#script.shift() ?? { text: "The script is over" };
    if (reply.status) {
      response.writeHead(reply.status, { "content-type": "application/json" });
      return response.end(JSON.stringify({ error: { message: "no" } }));
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const say = (delta, finish = null) =>
      response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
    for (const word of words(reply.reasoning)) say({ reasoning_content: word });
    for (const word of words(reply.text)) {
      say({ content: word });
      if (reply.pace) await new Promise((on) => setTimeout(on, reply.pace));
    }
    if (reply.hold) await reply.hold;
    if (reply.cut) return response.destroy();
    for (const word of words(reply.after)) say({ content: word });
    (reply.calls ?? []).forEach(([name, args], index) => {
      const text = typeof args === "string" ? args : JSON.stringify(args);
      say({ tool_calls: [{ index, id: `v${index}`, type: "function", function: { name, arguments: text.slice(0, 3) } }] });
      say({ tool_calls: [{ index, function: { arguments: text.slice(3) } }] });
    });
    say({}, reply.calls ? "tool_calls" : "stop");
    response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } })}\n\n`);
    response.end("data: [DONE]\n\n");
  }
}

const words = (text) => (text ? text.split(/(?<= )/) : []);

// What the model was told in its n-th request, without the system text.
export const told = (upstream, n) =>
  upstream.requests[n].messages
    .filter((message) => message.role !== "system")
    .map((message) => [message.role, typeof message.content === "string" ? message.content : (message.content?.[0]?.text ?? "")]);

export function gate() {
  let open;
  const shut = new Promise((done) => (open = done));
  return { shut, open };
}
