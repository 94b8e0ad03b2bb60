// Puts a short form beside each text file, for browsers that take it.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** What the first view may weigh, in bytes. */
const MOST = 300_000;
const dist = new URL("../dist/", import.meta.url).pathname;
let first = 0;

for (const name of readdirSync(dist, { recursive: true })) {
  const path = join(dist, String(name));
  if (!statSync(path).isFile() || !/\.(html|js|css|svg|webmanifest)$/.test(path)) continue;
  const short = gzipSync(readFileSync(path), { level: 9 });
  writeFileSync(`${path}.gz`, short);
  first += short.length;
}

console.log(`web app: ${Math.round(first / 1000)} kB compressed, all views together`);
if (first > MOST) {
  console.error(`web app: more than ${MOST / 1000} kB; leave something out`);
  process.exit(1);
}
