// The AI SDK as a chat server: `streamText` behind node:http, answered with the
// UI message stream that `useChat` reads. As in its documents, the server keeps
// nothing: each request brings the whole conversation, and the result of a tool
// of the browser comes inside the next request.
//
//   node aisdk.mjs --listen 127.0.0.1:0 --upstream 127.0.0.1:9000

import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import {
  convertToModelMessages,
  isStepCount,
  pipeUIMessageStreamToResponse,
  streamText,
  tool,
  toUIMessageStream,
} from 'ai';
import { z } from 'zod';

const { values } = parseArgs({
  options: { listen: { type: 'string' }, upstream: { type: 'string' } },
});
const [host, port] = values.listen.split(':');

const provider = createOpenAICompatible({
  name: 'mock',
  apiKey: 'none',
  baseURL: `http://${values.upstream}/v1`,
  includeUsage: true,
});

const tools = {
  get_time: tool({
    description: 'The current time.',
    inputSchema: z.object({}),
    execute: async () => ({ time: '12:00' }),
  }),
  // No `execute`: the client runs it.
  read_screen: tool({
    description: 'What the user sees.',
    inputSchema: z.object({}),
    outputSchema: z.object({ screen: z.string() }),
  }),
};

async function chat(request, response) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const { messages } = JSON.parse(Buffer.concat(pieces).toString());
  const result = streamText({
    model: provider('mock'),
    instructions: 'You are a helpful assistant.',
    messages: await convertToModelMessages(messages, { tools }),
    tools,
    stopWhen: isStepCount(5),
  });
  await pipeUIMessageStreamToResponse({
    response,
    stream: toUIMessageStream({ stream: result.stream, tools }),
  });
}

const server = createServer((request, response) => {
  if (request.url === '/ready') {
    response.end('{}');
  } else if (request.method === 'POST' && request.url === '/api/chat') {
    chat(request, response).catch((error) => {
      console.error(error);
      response.destroy(error);
    });
  } else {
    response.writeHead(404).end();
  }
});
// The client keeps its connections longer than the default of five seconds.
server.keepAliveTimeout = 120_000;
server.listen(Number(port), host, 4096, () => console.log('listening', server.address().port));
