/** A real MCP server on this machine, with a token, for pages of the gateway. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

export interface LocalMcp {
  url: string;
  token: string;
  /** Connections that were opened, calls of its tool, and connections that were ended by their client. */
  seen: { opened: number; calls: unknown[]; closed: number };
  close(): Promise<void>;
}

export async function localMcp(): Promise<LocalMcp> {
  const token = randomUUID();
  const seen: LocalMcp["seen"] = { opened: 0, calls: [], closed: 0 };
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const connect = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        seen.opened += 1;
        sessions.set(id, transport);
      },
      onsessionclosed: (id) => {
        seen.closed += 1;
        sessions.delete(id);
      },
    });
    const server = new Server({ name: "cellar", version: "1.0.0" }, { capabilities: { tools: {} } });
    const inputSchema = { type: "object" as const, properties: { shelf: { type: "number" } }, required: ["shelf"] };
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: "count_bottles", description: "Counts the bottles of a shelf.", inputSchema }] }));
    server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
      if (params.name !== "count_bottles") throw new Error(`There is no tool ${params.name}`);
      const shelf = Number(params.arguments?.["shelf"]);
      seen.calls.push(shelf);
      return { content: [{ type: "text", text: `${shelf * 12} bottles` }] };
    });
    // Its optional fields are typed more loosely than ours.
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    return transport;
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    response.setHeader("access-control-allow-origin", request.headers.origin ?? "*");
    response.setHeader("access-control-allow-methods", "GET, POST, DELETE");
    response.setHeader("access-control-allow-headers", "authorization, content-type, mcp-session-id, mcp-protocol-version");
    response.setHeader("access-control-expose-headers", "mcp-session-id");
    if (request.method === "OPTIONS") return void response.writeHead(204).end();
    if (request.headers.authorization !== `Bearer ${token}`) return void response.writeHead(401).end();
    const id = request.headers["mcp-session-id"];
    const transport = (typeof id === "string" ? sessions.get(id) : undefined) ?? (await connect());
    await transport.handleRequest(request, response);
  };
  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    token,
    seen,
    close: () => new Promise((done) => {
      server.closeAllConnections();
      server.close(() => done());
    }),
  };
}
