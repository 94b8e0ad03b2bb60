/** Which agent a new chat is with. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { chosen } from "../../src/lib/chosen.ts";

test("an agent that the gateway does not have is not talked with", () => {
  const agents = [{ name: "guide" }, { name: "helper" }];
  assert.equal(chosen(agents, "helper"), "helper");
  assert.equal(chosen(agents, "assistant"), "guide");
  assert.equal(chosen([], "assistant"), "assistant");
});
