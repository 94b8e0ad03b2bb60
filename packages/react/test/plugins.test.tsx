// Plugins that this browser holds.
import { act, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { PLUGINS_KEY, usePlugins, useToolRegistry, useToolyardChat, type BrowserPlugin } from "../src/index.js";
import { backend, chat, fresh, hears, say, show } from "./page.js";

const time: BrowserPlugin = {
  id: "dev-time-plugin",
  name: "Time Plugin",
  version: "1.0.0",
  tools: [
    {
      name: "get_current_time",
      description: "Get the current date and time in a specified timezone",
      parameters: { type: "object", properties: { timezone: { type: "string" } } },
      executorCode: "return { timezone: args.timezone || 'UTC' };",
    },
  ],
};
const open = () => show(fresh("ada"), () => ({ plugins: usePlugins(), registry: useToolRegistry() }), { strict: true });
const stored = () => JSON.parse(localStorage.getItem(PLUGINS_KEY) ?? "[]") as BrowserPlugin[];

test("h48 h49 a plugin is stored with the time of its installation, and an older version is replaced", () => {
  const page = open();
  act(() => page.now.plugins.install(time));
  act(() => page.now.plugins.install({ ...time, version: "1.1.0" }));
  expect(stored()).toHaveLength(1);
  expect(stored()[0]).toMatchObject({ id: "dev-time-plugin", version: "1.1.0", tools: time.tools });
  expect(Number.isNaN(Date.parse(stored()[0]?.installedAt ?? ""))).toBe(false);
  expect(page.now.plugins.installed).toHaveLength(1);
});

test("h49 a plugin without its fields and one whose tool exists are refused, and change nothing", () => {
  const page = open();
  act(() => page.now.plugins.install(time));
  const before = localStorage.getItem(PLUGINS_KEY);
  for (const faulty of [{}, { ...time, tools: [] }, { ...time, name: "" }]) {
    expect(() => page.now.plugins.install(faulty as BrowserPlugin)).toThrow("Invalid plugin: missing required fields");
  }
  expect(() => page.now.plugins.install({ ...time, id: "other" })).toThrow("Tool name conflict: get_current_time already exists");
  expect(localStorage.getItem(PLUGINS_KEY)).toBe(before);
});

test("h50 code is never offered, and a plugin that is off or gone offers nothing", () => {
  const page = open();
  act(() => page.now.plugins.install(time));
  expect(page.now.registry.definitions).toHaveLength(1);
  expect(JSON.stringify(page.now.registry.definitions)).not.toContain("timezone ||");
  expect(page.now.registry.definitions[0]).toMatchObject({ name: "get_current_time", serviceId: "dev-time-plugin" });
  expect(page.now.plugins.hasExecutor("get_current_time")).toBe(true);
  act(() => page.now.plugins.setEnabled("dev-time-plugin", false));
  expect([page.now.registry.definitions, page.now.plugins.installed.length]).toEqual([[], 1]);
  act(() => page.now.plugins.setEnabled("dev-time-plugin", true));
  act(() => page.now.plugins.uninstall("dev-time-plugin"));
  expect([page.now.registry.definitions, page.now.plugins.installed]).toEqual([[], []]);
});

test("h50 an unknown tool answers undefined", async () => {
  await expect(open().now.plugins.execute("nobody_has_it", {})).resolves.toBeUndefined();
});

test("h51 storage that cannot be read counts as empty, and a faulty plugin is passed over alone", () => {
  localStorage.setItem(PLUGINS_KEY, "[broken");
  expect(open().now.plugins.installed).toEqual([]);
  localStorage.setItem(PLUGINS_KEY, JSON.stringify([{ id: "bad" }, time]));
  expect(open().now.plugins.installed.map((plugin) => plugin.id)).toEqual(["dev-time-plugin"]);
});

test("h53 what another tab or the console installs is there without a reload", () => {
  const page = open();
  localStorage.setItem(PLUGINS_KEY, JSON.stringify([time]));
  act(() => {
    window.dispatchEvent(new StorageEvent("storage", { key: PLUGINS_KEY, newValue: JSON.stringify([time]) }));
  });
  expect(page.now.registry.definitions.map((tool) => tool.name)).toEqual(["get_current_time"]);
});

test("h60 a plugin of the gateway shows who vouches for it", async () => {
  const id = fresh("react-plugin");
  await backend().request("POST", "/api/plugins/install", { body: { ...time, id } });
  const page = open();
  await waitFor(() => expect(page.now.plugins.isLoading).toBe(false));
  const found = page.now.plugins.available.find((plugin) => plugin.id === id);
  expect(found?.installed).toMatchObject({ version: "1.0.0", verified: false, curators: [], usable: true, tools: ["get_current_time"] });
  expect(found?.installed?.warning).toMatch(/arbitrary code/);
});

test("h52 a chat offers a plugin's tool and runs its code outside of the page", async () => {
  const runCode = vi.fn((code: string, args: unknown) => Promise.resolve({ ran: code.length, args }));
  localStorage.setItem(PLUGINS_KEY, JSON.stringify([time]));
  const page = chat(fresh("ada"), { id: fresh("chat") }, { runCode, strict: true });
  await say(page, 'call get_current_time {"timezone":"Europe/Oslo"}');
  await hears(page, '"timezone":"Europe/Oslo"');
  expect(runCode).toHaveBeenCalledTimes(1);
  expect(runCode.mock.calls[0]?.slice(0, 2)).toEqual([time.tools[0]!.executorCode, { timezone: "Europe/Oslo" }]);
});

test("h52 a tool of the page and one of a plugin work beside each other", async () => {
  const page = show(fresh("ada"), () => ({ chat: useToolyardChat({ id: "both" }), plugins: usePlugins() }), {
    runCode: () => Promise.resolve("from the plugin"),
    tools: { confetti: { description: "Throws confetti", parameters: { type: "object", properties: {} }, execute: () => "from the page" } },
  });
  act(() => page.now.plugins.install(time));
  await waitFor(() => expect(page.now.chat.clientTools).toHaveLength(2));
  await act(async () => void page.now.chat.sendMessage("call get_current_time {}\ncall confetti {}"));
  const inner = { get now() { return page.now.chat; }, unmount: page.unmount };
  await hears(inner, "from the plugin");
  await hears(inner, "from the page");
});
