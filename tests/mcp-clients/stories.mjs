// The official MCP clients against an agent of the gateway.
//   stories.mjs legacy|modern http|stdio
// GATEWAY and SECRET say where; TOOLYARD is the binary for stdio.
import assert from 'node:assert/strict'

const [era, wire] = process.argv.slice(2)
const { GATEWAY, SECRET, TOOLYARD } = process.env
const legacy = era === 'legacy'

const kit = legacy
  ? {
      ...(await import('@modelcontextprotocol/sdk/client/index.js')),
      ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
      ...(await import('@modelcontextprotocol/sdk/client/stdio.js')),
      ...(await import('@modelcontextprotocol/sdk/types.js')),
    }
  : { ...(await import('@modelcontextprotocol/client')), ...(await import('@modelcontextprotocol/client/stdio')) }

function transport() {
  if (wire === 'stdio') {
    const { PATH, HOME } = process.env
    const env = { PATH, HOME, TOOLYARD_SECRET_KEY: SECRET }
    return new kit.StdioClientTransport({ command: TOOLYARD, args: ['mcp', '--agent', 'story', '--url', GATEWAY], env })
  }
  const headers = { Authorization: `Bearer ${SECRET}` }
  return new kit.StreamableHTTPClientTransport(new URL(`${GATEWAY}/mcp/story`), { requestInit: { headers } })
}

/** A client; `says` answers what its user is asked. */
async function connect(says) {
  const capabilities = says ? { elicitation: { form: {} } } : {}
  const options = legacy ? { capabilities } : { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } }
  const client = new kit.Client({ name: 'stories', version: '1.0.0' }, options)
  const handler = async request => says(request.params)
  if (says) {
    client.setRequestHandler(legacy ? kit.ElicitRequestSchema : 'elicitation/create', handler)
  }
  await client.connect(transport())
  return client
}

const api = async (method, path, body) => {
  const headers = { 'x-secret-key': SECRET, 'content-type': 'application/json' }
  const response = await fetch(GATEWAY + path, { method, headers, body: body && JSON.stringify(body) })
  assert.ok(response.ok, `${method} ${path}: ${response.status}`)
  return response.json()
}

const text = result => result.content.map(block => block.text ?? '').join('')

async function story(name, tell) {
  try {
    await tell()
    console.log(`ok ${name}`)
  } catch (error) {
    console.log(`FAILED ${name}: ${error.stack}`)
    process.exitCode = 1
  }
}

await story('the tools are the agent and what its configuration names', async () => {
  const client = await connect()
  const { tools } = await client.listTools()
  assert.deepEqual(tools.map(tool => tool.name), ['ask_story', 'delete_thing', 'lucky'])
  await client.close()
})

await story('a question gets an answer, and its session goes on', async () => {
  const client = await connect()
  const first = await client.callTool({ name: 'ask_story', arguments: { message: 'hello there' } })
  assert.equal(first.structuredContent.status, 'completed')
  assert.equal(first.structuredContent.answer, text(first))
  const { session, run } = first.structuredContent
  const next = await client.callTool({ name: 'ask_story', arguments: { message: 'and again', session } })
  assert.equal(next.structuredContent.session, session)
  assert.notEqual(next.structuredContent.run, run)
  const messages = await api('GET', `/api/smart-spaces/${session}/messages`)
  assert.equal(messages.messages.length, 4)
  await client.close()
})

await story('what happens on the way is progress', async () => {
  const client = await connect()
  const heard = []
  const ask = { name: 'ask_story', arguments: { message: 'call lucky {}' } }
  const options = { onprogress: news => heard.push(news) }
  const result = legacy ? await client.callTool(ask, undefined, options) : await client.callTool(ask, options)
  assert.match(text(result), /42/)
  assert.ok(heard.some(news => /lucky/.test(news.message)), JSON.stringify(heard))
  assert.ok(heard.every((news, i) => i === 0 || news.progress > heard[i - 1].progress))
  await client.close()
})

await story('a tool of the agent is called without its model', async () => {
  const client = await connect()
  const result = await client.callTool({ name: 'lucky', arguments: {} })
  assert.equal(result.structuredContent.number, 42)
  assert.ok(!result.isError)
  await client.close()
})

await story('what does not fit is said to the model, what is not there is an error', async () => {
  const client = await connect()
  const bad = await client.callTool({ name: 'ask_story', arguments: { message: 5 } })
  assert.ok(bad.isError && /message/.test(text(bad)))
  const wrong = await client.callTool({ name: 'lucky', arguments: { n: 'no number' } })
  assert.ok(wrong.isError, JSON.stringify(wrong))
  await assert.rejects(client.callTool({ name: 'nothing', arguments: {} }), /Unknown tool/)
  await client.close()
})

await story('a permission is asked of the user', async () => {
  const asked = []
  let decision = 'allow'
  const client = await connect(params => {
    asked.push(params)
    return { action: 'accept', content: { decision } }
  })
  const gone = await client.callTool({ name: 'delete_thing', arguments: {} })
  assert.equal(gone.structuredContent.thing, 'gone')
  assert.match(asked[0].message, /delete_thing/)
  decision = 'deny'
  const kept = await client.callTool({ name: 'delete_thing', arguments: {} })
  assert.ok(kept.isError && !/gone/.test(text(kept)), JSON.stringify(kept))
  const asking = await client.callTool({ name: 'ask_story', arguments: { message: 'call delete_thing {}' } })
  assert.equal(asking.structuredContent.status, 'completed')
  assert.ok(!/gone/.test(text(asking)))
  assert.equal(asked.length, 3)
  await client.close()
})

await story('a refused form denies', async () => {
  const client = await connect(() => ({ action: 'decline' }))
  const kept = await client.callTool({ name: 'delete_thing', arguments: {} })
  assert.ok(kept.isError, JSON.stringify(kept))
  await client.close()
})

await story('a client tool is answered by the user', async () => {
  const client = await connect(params => {
    assert.match(params.message, /here/)
    return { action: 'accept', content: { result: 'from my desk' } }
  })
  const result = await client.callTool({ name: 'ask_story', arguments: { message: 'call here {}' } })
  assert.match(text(result), /from my desk/)
  await client.close()
})

await story('who cannot ask is told what the agent waits for, and comes back', async () => {
  const client = await connect()
  const paused = await client.callTool({ name: 'ask_story', arguments: { message: 'call delete_thing {}' } })
  const { status, run, waits } = paused.structuredContent
  assert.equal(status, 'waiting')
  assert.equal(waits[0].kind, 'approval')
  await api('POST', `/api/waits/${waits[0].wait}/answer`, { decision: 'allow' })
  const done = await client.callTool({ name: 'ask_story', arguments: { run } })
  assert.equal(done.structuredContent.status, 'completed')
  assert.match(text(done), /gone/)
  await client.close()
})

await story('a call that is taken back stops its run', async () => {
  const client = await connect()
  const stop = new AbortController()
  const ask = { name: 'ask_story', arguments: { message: 'slow 500' } }
  let begun
  const started = new Promise(done => { begun = done })
  const options = { signal: stop.signal, onprogress: () => begun() }
  const call = legacy ? client.callTool(ask, undefined, options) : client.callTool(ask, options)
  await Promise.race([started, call])
  const { runs } = await api('GET', '/api/runs?status=running')
  assert.equal(runs.length, 1)
  stop.abort('enough')
  await assert.rejects(call)
  for (let i = 0; ; i++) {
    const { run } = await api('GET', `/api/runs/${runs[0].id}`)
    if (run.status === 'canceled') break
    assert.ok(i < 300, run.status)
    await new Promise(done => setTimeout(done, 100))
  }
  await client.close()
})

process.exit()
