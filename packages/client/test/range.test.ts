import assert from "node:assert/strict";
import { test } from "node:test";
import { inRange } from "../src/index.js";
import { requirement, sameLine } from "../src/range.js";

test("h67_ranges_hold_what_npm_says_they_hold", () => {
  const yes = [
    ["1.2.3", "1.2.3"], ["1.2.3", "=1.2.3"], ["1.2.3", "^1.0.0"], ["1.9.9", "^1"], ["0.2.5", "^0.2.3"], ["0.0.3", "^0.0.3"],
    ["0.0.9", "^0.0"], ["1.2.9", "~1.2.3"], ["1.9.0", "~1"], ["1.2.9", "1.2"], ["1.9.9", "1.x"], ["2.0.0", ">=1"], ["1.5.0", ">=1 <2"],
    ["1.5.0", ">= 1.2.0 < 2.0.0"], ["3.0.0", "1 || 3"], ["9.9.9", "*"], ["2.0.0", ">1"], ["1.9.9", "<=1"], ["1.2.3", "v1.2.3"],
    ["1.2.3+build", "1.2.3"], ["1.0.0-beta", "<1.0.0"],
  ];
  const no = [
    ["1.2.4", "1.2.3"], ["2.0.0", "^1.0.0"], ["1.0.0", "^1.0.1"], ["0.3.0", "^0.2.3"], ["0.0.4", "^0.0.3"], ["1.3.0", "~1.2.3"],
    ["1.3.0", "1.2"], ["2.0.0", "1.x"], ["2.0.0", ">=1 <2"], ["2.0.0", "1 || 3"], ["1.9.9", ">1"], ["2.0.0", "<=1"], ["1.0.0", "<1.0.0"],
    ["1.0.0-beta", ">=1.0.0"], ["dev", "^1"],
  ];
  for (const [version, range] of yes) assert.ok(inRange(version!, range!), `${version} in ${range}`);
  for (const [version, range] of no) assert.ok(!inRange(version!, range!), `${version} not in ${range}`);
  assert.ok(inRange("dev", "*"));
  assert.throws(() => inRange("1.0.0", "newest"), /not a version range/);
});

test("h67_a_requirement_is_a_name_and_a_range", () => {
  assert.deepEqual(requirement("a@^1"), { name: "a", range: "^1" });
  assert.deepEqual(requirement("@of/a@1 || 2"), { name: "@of/a", range: "1 || 2" });
  assert.deepEqual(requirement("@of/a"), { name: "@of/a", range: "*" });
});

test("h68_releases_of_one_line_understand_each_other", () => {
  assert.ok(sameLine("0.1.0", "0.1.9") && sameLine("1.0.0", "1.9.0") && sameLine("nightly", "0.1.0"));
  assert.ok(!sameLine("0.1.0", "0.2.0") && !sameLine("1.0.0", "2.0.0"));
});
