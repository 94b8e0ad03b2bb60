// The official JavaScript client of A2A 1.0 against a gateway: base URL and key.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';

const require = createRequire(join(process.env.TOOLYARD_A2A_CLIENTS, 'node', 'index.js'));
const sdk = require('@a2a-js/sdk/client');
const [base, key] = process.argv.slice(2);
const CLIENT_TOOLS = 'urn:toolyard:a2a:ext/client-tools/v1';
const COMPLETED = 3, CANCELED = 5, INPUT_REQUIRED = 6;

const fetchImpl = (url, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set('x-secret-key', key);
  return fetch(url, { ...init, headers });
};
const text = (value) => ({ content: { $case: 'text', value }, filename: '', mediaType: '' });
const data = (value) => ({ content: { $case: 'data', value }, filename: '', mediaType: '' });
const message = (parts, more = {}) => ({
  tenant: '',
  message: {
    messageId: randomUUID(), role: 1, parts, contextId: '', taskId: '', extensions: [], referenceTaskIds: [], ...more,
  },
});

for (const transport of [
  new sdk.JsonRpcTransportFactory({ fetchImpl }),
  new sdk.RestTransportFactory({ fetchImpl }),
]) {
  const factory = new sdk.ClientFactory({
    transports: [transport],
    preferredTransports: [transport.protocolName],
    cardResolver: new sdk.DefaultAgentCardResolver({ fetchImpl }),
  });
  const client = await factory.createFromUrl(`${base}/`);
  const done = await client.sendMessage(message([text('say hello')]));
  assert.equal(done.status.state, COMPLETED);
  assert.equal(done.artifacts[0].parts[0].content.value, 'hello');

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
  for await (const event of client.sendMessageStream(offer)) events.push(event.payload);
  assert.equal(events[0].$case, 'task');
  const { status } = events.at(-1).value;
  assert.equal(status.state, INPUT_REQUIRED);
  const call = status.message.parts[1].content.value;
  assert.deepEqual([call.toolName, call.arguments], ['lookup', { name: 'ann' }]);

  const { id, contextId } = events[0].value;
  const result = { type: 'tool-result', toolCallId: call.toolCallId, toolName: 'lookup', success: true, result: 7 };
  const task = await client.sendMessage(message([data(result)], { taskId: id, contextId }));
  assert.deepEqual([task.id, task.status.state], [id, COMPLETED]);

  const again = await client.sendMessage(message([text('call lookup {"name":"bob"}')], { contextId }));
  assert.equal(again.status.state, INPUT_REQUIRED);
  const canceled = await client.cancelTask({ tenant: '', id: again.id });
  assert.equal(canceled.status.state, CANCELED);
  const read = await client.getTask({ tenant: '', id });
  assert.equal(read.status.state, COMPLETED);
}
console.log('all well');
