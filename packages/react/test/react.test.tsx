import { version } from "react";
import { version as domVersion } from "react-dom";
import { expect, test } from "vitest";

test("the tests run on the React that their project names", ({ task }) => {
  const wanted = /(\d+)$/.exec(task.file.projectName ?? "")?.[1];
  expect([version, domVersion].map((each) => each.split(".")[0])).toEqual([wanted, wanted]);
});
