import assert from "node:assert/strict";
import { test } from "node:test";
import { EventSplitter, eventsOf, type ServerEvent } from "../src/index.js";

const text = [
  "retry: 1000\n\n",
  ": keep-alive\n\n",
  'id: 4\nevent: tool-input-available\ndata: {"a":"ä€😀"}\n\n',
  "data: one\ndata:two\ndata\n\n",
  "event: lonely\n\n",
  "unknown: field\ndata: last\n\n",
].join("");

const expected: ServerEvent[] = [
  { id: "4", event: "tool-input-available", data: '{"a":"ä€😀"}' },
  { event: "message", data: "one\ntwo\n" },
  { event: "message", data: "last" },
];

function split(bytes: Uint8Array, cuts: number[]): ServerEvent[] {
  const splitter = new EventSplitter();
  const events: ServerEvent[] = [];
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    events.push(...splitter.push(bytes.subarray(from, to)));
    from = to;
  }
  events.push(...splitter.end());
  assert.equal(splitter.retryMs, 1000);
  return events;
}

for (const [name, end] of [["LF", "\n"], ["CRLF", "\r\n"], ["CR", "\r"]] as const) {
  test(`a stream with ${name} is read the same, wherever it is cut`, () => {
    const bytes = new TextEncoder().encode(text.replaceAll("\n", end));
    assert.deepEqual(split(bytes, []), expected);
    for (let first = 0; first <= bytes.length; first += 1) {
      assert.deepEqual(split(bytes, [first]), expected, `cut at ${first}`);
      assert.deepEqual(split(bytes, [first, Math.min(first + 1, bytes.length)]), expected, `cut at ${first} and one later`);
    }
    const every = Array.from(bytes, (_, at) => at);
    assert.deepEqual(split(bytes, every), expected, "byte by byte");
  });
}

test("a byte order mark is no part of the first field", () => {
  const splitter = new EventSplitter();
  assert.deepEqual(splitter.push(new TextEncoder().encode("\ufeffdata: a\n\n")), [{ event: "message", data: "a" }]);
});

test("an event without its blank line is not delivered", () => {
  const splitter = new EventSplitter();
  assert.deepEqual(splitter.push(new TextEncoder().encode("data: half\n")), []);
  assert.deepEqual(splitter.end(), []);
});

test("a reader that leaves closes the connection", async () => {
  let canceled = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode("data: x\n\n")),
    cancel: () => {
      canceled = true;
    },
  });
  for await (const event of eventsOf(body)) {
    assert.equal(event.data, "x");
    break;
  }
  assert.ok(canceled);
});
