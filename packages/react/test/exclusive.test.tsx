// Tabs take turns.
import { afterEach, expect, test, vi } from "vitest";
import { exclusively, randomName } from "../src/calls/exclusive.js";

afterEach(() => vi.unstubAllGlobals());

test("without locks tabs take turns by talking", async () => {
  expect(navigator.locks).toBeUndefined();
  const name = randomName();
  let inside = 0;
  let most = 0;
  const order: number[] = [];
  const work = (at: number) => async () => {
    inside += 1;
    most = Math.max(most, inside);
    await new Promise((next) => setTimeout(next, 5));
    order.push(at);
    inside -= 1;
    return at;
  };
  const done = await Promise.all([0, 1, 2].map((at) => exclusively(name, work(at))));
  expect(done).toEqual([0, 1, 2]);
  expect([...order].sort()).toEqual([0, 1, 2]);
  expect(most).toBe(1);
});

test("work that fails lets the next one in", async () => {
  const name = randomName();
  const fails = exclusively(name, () => Promise.reject(new Error("broken")));
  const works = exclusively(name, () => Promise.resolve("fine"));
  await expect(fails).rejects.toThrow("broken");
  await expect(works).resolves.toBe("fine");
});

test("other names do not wait", async () => {
  let release: () => void = () => undefined;
  const held = exclusively(randomName(), () => new Promise<void>((resolve) => (release = resolve)));
  await expect(exclusively(randomName(), () => Promise.resolve(1))).resolves.toBe(1);
  release();
  await held;
});

test("the browser's locks are used where there are some", async () => {
  const names: string[] = [];
  const request = (name: string, work: () => unknown) => {
    names.push(name);
    return Promise.resolve(work());
  };
  vi.stubGlobal("navigator", { locks: { request } });
  await expect(exclusively("call:1", () => Promise.resolve("done"))).resolves.toBe("done");
  expect(names).toEqual(["toolyard:call:1"]);
});
