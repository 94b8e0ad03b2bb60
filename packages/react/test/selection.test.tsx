// Which tools people picked, over components and tabs.
import { act } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { SELECTION_KEY, STORAGE_CHANGED, useToolRegistry, useToolSelection, type PageTools, type StorageChange } from "../src/index.js";
import { fresh, show } from "./page.js";

const tool = (description: string) => ({ description, parameters: { type: "object" as const, properties: {} }, execute: () => null });
const tools: PageTools = { read: tool("Reads"), delete_all: tool("Deletes") };
const open = (props: { strict?: boolean } = {}) =>
  show(fresh("ada"), () => ({ selection: useToolSelection(), registry: useToolRegistry() }), { tools, ...props });
const stored = () => JSON.parse(localStorage.getItem(SELECTION_KEY) ?? "null") as unknown;
const offered = (page: ReturnType<typeof open>) => page.now.registry.definitions.map(({ name }) => name);

/** What another tab does: this one hears it as an event of its storage. */
function otherTab(key: string | null, newValue: string | null, oldValue: string | null = null): void {
  if (key !== null && newValue !== null) localStorage.setItem(key, newValue);
  window.dispatchEvent(new StorageEvent("storage", { key, newValue, oldValue }));
}

test("c17 what is missing is selected, and the map is keyed by service and tool", () => {
  localStorage.setItem(SELECTION_KEY, JSON.stringify({ "page:read": false, odd: "yes" }));
  const page = open();
  expect(page.now.selection.selection).toEqual({ "page:read": false });
  expect(page.now.selection.isSelected("page", "read")).toBe(false);
  expect(page.now.selection.isSelected("page", "delete_all")).toBe(true);
  expect(offered(page)).toEqual(["delete_all"]);
});

test("c17 storage that cannot be read counts as empty", () => {
  localStorage.setItem(SELECTION_KEY, "{broken");
  expect(offered(open())).toEqual(["read", "delete_all"]);
});

test("c18 a toggle writes the storage and tells this tab with a typed event", () => {
  const heard: StorageChange[] = [];
  const hear = (event: CustomEvent<StorageChange>) => heard.push(event.detail);
  window.addEventListener(STORAGE_CHANGED, hear);
  const page = open({ strict: true });
  act(() => page.now.selection.toggle("page", "read"));
  expect(stored()).toEqual({ "page:read": false });
  expect(heard).toEqual([{ key: SELECTION_KEY, newValue: '{"page:read":false}' }]);
  act(() => page.now.selection.toggle("page", "read"));
  expect(stored()).toEqual({ "page:read": true });
  window.removeEventListener(STORAGE_CHANGED, hear);
});

test("c19 other components, other tabs and the console are heard; other keys are not", () => {
  const page = open({ strict: true });
  const second = open();
  act(() => page.now.selection.toggle("page", "read"));
  expect(offered(second)).toEqual(["delete_all"]);
  act(() => otherTab(SELECTION_KEY, '{"page:delete_all":false}'));
  expect(offered(page)).toEqual(["read"]);
  act(() => otherTab("something-else", '{"page:read":false}'));
  expect(offered(page)).toEqual(["read"]);
  act(() => {
    window.dispatchEvent(new CustomEvent(STORAGE_CHANGED, { detail: { key: SELECTION_KEY, newValue: "{}" } }));
  });
  expect(offered(page)).toEqual(["read", "delete_all"]);
});

test("c19 an event without a change changes nothing, and a cleared storage selects all", () => {
  const page = open();
  act(() => page.now.selection.toggle("page", "read"));
  act(() => window.dispatchEvent(new StorageEvent("storage", { key: SELECTION_KEY, newValue: "{}", oldValue: "{}" })));
  expect(offered(page)).toEqual(["delete_all"]);
  localStorage.clear();
  act(() => otherTab(null, null));
  expect(offered(page)).toEqual(["read", "delete_all"]);
});

test("c19 listeners go when the components go", () => {
  const added = vi.spyOn(window, "addEventListener");
  const removed = vi.spyOn(window, "removeEventListener");
  const count = (spy: typeof added) => spy.mock.calls.filter(([type]) => type === "storage" || type === STORAGE_CHANGED).length;
  const page = open({ strict: true });
  page.unmount();
  expect(count(added)).toBeGreaterThan(0);
  expect(count(removed as never)).toBe(count(added));
  vi.restoreAllMocks();
});

test("c20 the registry changes only when the tools really change", () => {
  const page = open();
  const before = page.now.registry.tools;
  act(() => otherTab(SELECTION_KEY, '{"other:tool":false}'));
  expect(page.now.registry.tools).toBe(before);
  act(() => page.now.selection.select("page", ["read", "delete_all"], false));
  expect(page.now.registry.tools).not.toBe(before);
  expect(page.now.registry.services).toMatchObject([{ serviceId: "page", selected: 0, tools: [{ toolName: "read" }, { toolName: "delete_all" }] }]);
  expect(offered(page)).toEqual([]);
});

test("c8 c9 services bring tools at run time, with risk and names that do not clash", () => {
  const page = open();
  let takeAway: () => void = () => undefined;
  const run = vi.fn(() => "files");
  act(() => {
    takeAway = page.now.registry.register({ serviceId: "files", title: "Files", tools: { read: { ...tool("Reads a file"), execute: run } } });
  });
  expect(page.now.registry.tools.map(({ key, name, riskLevel }) => [key, name, riskLevel])).toEqual([
    ["page:read", "read", "low"],
    ["page:delete_all", "delete_all", "high"],
    ["files:read", "files_read", "low"],
  ]);
  expect(page.now.registry.definitions[2]).toEqual({ name: "files_read", description: "Reads a file", parameters: { type: "object", properties: {} }, serviceId: "files" });
  void page.now.registry.execute("files_read", {});
  expect(run).toHaveBeenCalledTimes(1);
  act(() => takeAway());
  expect(offered(page)).toEqual(["read", "delete_all"]);
});
