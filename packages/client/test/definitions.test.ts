import assert from "node:assert/strict";
import { test } from "node:test";
import { safeValidateToolDefinitions, validateToolDefinitions } from "../src/index.js";
import { argumentErrors, ClientToolProvider, type FunctionCall } from "../src/provider.js";

const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });
const tool = (name: unknown, more: object = {}) => ({ name, description: "Does it", parameters: object({}), ...more });
const errors = (list: unknown, options = {}) => {
  const found = safeValidateToolDefinitions(list, options);
  return found.success ? [] : found.errors;
};

test("row4_the_three_shapes_become_one", () => {
  const parameters = object({ q: { type: "string" } });
  const one = { name: "find", description: "Find", parameters };
  const { parameters: inputSchema, ...rest } = one;
  for (const shape of [one, { ...rest, inputSchema }, { type: "function", function: one }, { type: "function", function: { ...rest, inputSchema } }]) {
    assert.deepEqual(validateToolDefinitions([shape]), [one]);
  }
});

test("l6_every_documented_keyword_is_kept", () => {
  const parameters = object(
    {
      name: { type: "string", description: "Name", minLength: 1, maxLength: 100, pattern: "^[a-z]+$", format: "email" },
      age: { type: "integer", minimum: 0, maximum: 150 },
      price: { type: "number", minimum: 0.01, multipleOf: 0.01 },
      status: { type: "string", enum: ["active", "inactive"] },
      tags: { type: "array", items: { type: "string" }, minItems: 1, maxItems: 10 },
      address: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      none: { type: "null" },
      some: { anyOf: [{ type: "string" }, { type: "null" }] },
    },
    { required: ["name", "age"], additionalProperties: false },
  );
  assert.deepEqual(validateToolDefinitions([tool("t", { parameters })])[0]?.parameters, parameters);
});

test("l8_l9_l27_refusals_begin_as_documented_and_name_the_tool", () => {
  assert.throws(() => validateToolDefinitions([tool("")]), { message: "Invalid client tool definitions: Tool #1: has no name" });
  assert.throws(() => validateToolDefinitions([tool("ok"), tool("not ok!")]), {
    message: "Invalid client tool definitions: Tool not ok! (#2): invalid name: use 1-64 letters, digits, hyphens and underscores",
  });
  assert.deepEqual(safeValidateToolDefinitions([tool("a")]), { success: true, data: [tool("a")], warnings: [] });
  assert.deepEqual(errors("tools"), ["The tool definitions must be a list"]);
  assert.deepEqual(errors([tool("a b"), tool("c", { parameters: { type: "array" } })]), [
    "Tool a b (#1): invalid name: use 1-64 letters, digits, hyphens and underscores",
    'Tool c (#2): the schema must be an object schema: `type` at the root must be "object"',
  ]);
});

test("row1_names_have_a_rule_per_surface", () => {
  for (const name of ["my-tool_name-123", "1", "_", "a".repeat(64)]) assert.deepEqual(errors([tool(name)]), [], name);
  for (const name of ["", "a b", "a.b", "ä", "a\n", "__proto__", "constructor", "a".repeat(65), 7, null]) assert.equal(errors([tool(name)]).length, 1, String(name));
  for (const name of ["my-tool", "1a", "_a"]) {
    assert.deepEqual(errors([tool(name)], { names: "chat" }), [
      `Tool ${name} (#1): invalid name: use 1-64 letters, digits and underscores, beginning with a letter`,
    ]);
  }
});

test("row2_row3_limits_are_named_with_their_number", () => {
  const eleven = Array.from({ length: 11 }, (_, n) => tool(`t${n}`));
  assert.deepEqual(errors(eleven, { maxTools: 10 }), ["Too many tools: 11 given, at most 10 allowed"]);
  const deep = (levels: number): object => (levels === 1 ? { type: "string" } : object({ a: deep(levels - 1) }));
  assert.deepEqual(errors([tool("t", { parameters: deep(5) })]), []);
  assert.deepEqual(errors([tool("t", { parameters: deep(6) })]), ["Tool t (#1): the schema is nested deeper than 5 levels"]);
  assert.deepEqual(errors([tool("t", { parameters: deep(5000) })]), ["Tool t (#1): the schema is nested deeper than 5 levels"]);
  const wide = (count: number) => object(Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, {}])));
  assert.deepEqual(errors([tool("t", { parameters: wide(20) })]), []);
  assert.deepEqual(errors([tool("t", { parameters: wide(21) })]), ["Tool t (#1): /properties has 21 properties, more than 20"]);
  assert.deepEqual(errors([tool("t", { description: "x".repeat(1025) })]), ["Tool t (#1): the description is longer than 1024 characters"]);
  assert.deepEqual(errors([tool("t", { description: "😀".repeat(1024) })]), []);
});

test("l7_l27_other_faults_have_their_sentences", () => {
  const cases: [unknown, string][] = [
    ["tool", "Tool #1: must be an object"],
    [{ function: tool("a") }, 'Tool #1: `type` must be "function" when the definition is wrapped in `function`'],
    [tool("a", { description: undefined }), "Tool a (#1): has no description"],
    [tool("a", { description: 7 }), "Tool a (#1): the description must be a string"],
    [tool("a", { description: "x\u202ey" }), "Tool a (#1): the description has the hidden character U+202E"],
    [tool("a", { inputSchema: object({}) }), "Tool a (#1): has both `parameters` and `inputSchema`"],
    [{ name: "a", description: "d" }, "Tool a (#1): has no `parameters` (or `inputSchema`)"],
    [tool("a", { parameters: { type: "object" } }), "Tool a (#1): the schema must list its parameters: `properties` is missing at the root"],
    [
      tool("a", { parameters: object({ "x/y": { type: "date" } }) }),
      "Tool a (#1): /properties/x~1y/type has an unknown type: use string, number, integer, boolean, array, object or null",
    ],
    [tool("a", { parameters: object({ x: { $ref: "#/x" } }) }), "Tool a (#1): /properties/x/$ref uses `$ref`, which is not allowed here"],
  ];
  for (const [given, text] of cases) assert.deepEqual(errors([given]), [text]);
  assert.deepEqual(errors(["a", "b", "a", "c", "b", "a"].map((name) => tool(name))), ["Duplicate tool names: a, b"]);
  const warned = safeValidateToolDefinitions([tool("a", { deprecated: "use b" }), tool("b", { deprecated: true }), tool("c", { deprecated: false })]);
  assert.deepEqual(warned.success && warned.warnings, ["Tool a is deprecated: use b", "Tool b is deprecated"]);
});

const search = {
  name: "search_database",
  description: "Search the client database",
  parameters: object({ query: { type: "string" }, limit: { type: "integer", minimum: 1, maximum: 100 } }, { required: ["query"] }),
};
const call = (name: string, args: unknown): FunctionCall => {
  return { id: "call-1", type: "function", function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) } };
};

test("l10_l11_l12_l14_a_provider_hands_calls_on", async () => {
  const seen: unknown[] = [];
  const provider = new ClientToolProvider({
    tools: [{ type: "function", function: search }],
    onInputRequired: async (asked, context) => {
      seen.push([asked.function.name, context.taskId]);
      return { rows: 2 };
    },
  });
  assert.deepEqual(await provider.getTools(), [search]);
  const result = await provider.execute(call("search_database", { query: "x" }), { taskId: "t", contextId: "c" });
  assert.deepEqual(result, { toolCallId: "call-1", toolName: "search_database", success: true, result: { rows: 2 } });
  assert.deepEqual(seen, [["search_database", "t"]]);
  assert.throws(() => new ClientToolProvider({ tools: [{}], onInputRequired: () => 1 }), /^ToolyardError: Invalid client tool definitions: /);
});

test("l12_l13_execute_never_throws_for_tool_problems", async () => {
  const provider = new ClientToolProvider({ tools: [search], onInputRequired: () => Promise.reject(new Error("client is gone")) });
  const error = async (given: FunctionCall) => (await provider.execute(given)).error;
  assert.equal(await error(call("other", {})), "Tool other not found in client tools");
  assert.match((await error(call("search_database", "{"))) ?? "", /^Invalid tool arguments JSON: /);
  assert.equal(await error(call("search_database", {})), "client is gone");
  const whole = new ClientToolProvider({
    tools: [search],
    onInputRequired: () => ({ toolCallId: "call-1", toolName: "search_database", success: false, result: null, error: "denied" }),
  });
  assert.equal((await whole.execute(call("search_database", {}))).error, "denied");
});

test("l15_l16_l17_arguments_are_judged_in_the_documented_words", () => {
  const strict = { ...search, name: "strict", parameters: { ...search.parameters, additionalProperties: false } };
  const provider = new ClientToolProvider({ tools: [search, strict], onInputRequired: () => 1 });
  const judge = (name: string, args: unknown) => provider.validateToolArguments(call(name, args));
  assert.deepEqual(judge("search_database", { query: "x", limit: 10, more: 1 }), { valid: true });
  assert.deepEqual(judge("search_database", {}), { valid: false, errors: ["Missing required parameter: query"] });
  assert.deepEqual(judge("strict", { query: "x", more: 1 }), { valid: false, errors: ["Unknown parameter: more"] });
  assert.deepEqual(judge("strict", { query: 7, limit: 2.5 }), {
    valid: false,
    errors: ["Parameter query has wrong type: expected string, got number", "Parameter limit must be an integer, got: 2.5"],
  });
  assert.deepEqual(judge("search_database", null), { valid: false, errors: ["Invalid tool arguments: must be an object."] });
  assert.deepEqual(judge("search_database", { query: "x", limit: 0 }), { valid: false, errors: ["Parameter limit is too small (minimum)"] });
  assert.deepEqual(judge("nobody", {}), { valid: false, errors: ["Tool nobody not found"] });
  assert.match(judge("strict", "{").errors?.[0] ?? "", /^Invalid tool arguments JSON: /);
});

test("l28_arguments_are_judged_through_all_levels", () => {
  const schema = object({
    list: { type: "array", items: object({ n: { type: ["integer", "null"] } }, { required: ["n"] }), maxItems: 2 },
    kind: { enum: ["a", { b: 1 }] },
    text: { type: "string", maxLength: 2 },
  }) as never;
  assert.deepEqual(argumentErrors(schema, { list: [{ n: 1 }, { n: null }], kind: { b: 1 }, text: "😀😀" }), []);
  assert.deepEqual(argumentErrors(schema, { list: [{ n: "x" }, {}, {}], kind: "c", text: "abc", __proto__: null }), [
    "Parameter list has too many items (maxItems)",
    "Parameter list[0].n has wrong type: expected integer or null, got string",
    "Missing required parameter: list[1].n",
    "Missing required parameter: list[2].n",
    "Parameter kind is not one of the allowed values (enum)",
    "Parameter text is too long (maxLength)",
  ]);
});
