// The official JavaScript client of A2A 0.3 against a gateway: base URL and key.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';

const require = createRequire(join(process.env.TOOLYARD_A2A_CLIENTS, 'node', 'index.js'));
const sdk = require('old/client');
const [base, key] = process.argv.slice(2);
const CLIENT_TOOLS = 'urn:toolyard:a2a:ext/client-tools/v1';

const fetchImpl = (url, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set('x-secret-key', key);
  return fetch(url, { ...init, headers });
};
const message = (parts, more = {}) => ({
  message: { kind: 'message', messageId: randomUUID(), role: 'user', parts, ...more },
});
const text = (value) => ({ kind: 'text', text: value });

const factory = new sdk.ClientFactory({
  transports: [new sdk.JsonRpcTransportFactory({ fetchImpl })],
  cardResolver: new sdk.DefaultAgentCardResolver({ fetchImpl }),
});
const client = await factory.createFromUrl(`${base}/`);
const done = await client.sendMessage(message([text('say hello')]));
assert.equal(done.status.state, 'completed');
assert.equal(done.artifacts[0].parts[0].text, 'hello');

const tool = {
  name: 'lookup',
  description: 'Looks somebody up',
  parameters: { type: 'object', properties: { name: { type: 'string' } } },
};
const offer = message([text('call lookup {"name":"ann"}')], {
  extensions: [CLIENT_TOOLS],
  metadata: { [CLIENT_TOOLS]: { tools: [tool] } },
});
const events = [];
for await (const event of client.sendMessageStream(offer)) events.push(event);
assert.equal(events[0].kind, 'task');
const last = events.at(-1);
assert.deepEqual([last.kind, last.status.state, last.final], ['status-update', 'input-required', true]);
const call = last.status.message.parts[1].data;
const result = { type: 'tool-result', toolCallId: call.toolCallId, toolName: 'lookup', success: true, result: 7 };
const task = await client.sendMessage(
  message([{ kind: 'data', data: result }], { taskId: last.taskId, contextId: last.contextId }),
);
assert.deepEqual([task.id, task.status.state], [last.taskId, 'completed']);
console.log('all well');
