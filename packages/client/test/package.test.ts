import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { VERSION } from "../src/index.js";

const here = join(import.meta.dirname, "..");
/** What a browser loads of the client, compressed. */
const MOST = 15_000;

test(`the client has at most ${MOST} bytes, minified and compressed`, async () => {
  const built = await build({ entryPoints: [join(here, "src/index.ts")], bundle: true, minify: true, format: "esm", platform: "browser", write: false });
  const size = gzipSync(built.outputFiles[0]!.contents, { level: 9 }).length;
  assert.ok(size <= MOST, `${size} bytes`);
});

test("h68_the_version_is_that_of_the_package", async () => {
  const { version, dependencies } = JSON.parse(await readFile(join(here, "package.json"), "utf8")) as { version: string; dependencies?: object };
  assert.equal(VERSION, version);
  assert.equal(dependencies, undefined, "the client has no dependencies");
});
