import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

// A loaded machine is slow, not wrong.
configure({ asyncUtilTimeout: 30_000 });

afterEach(() => {
  if (typeof localStorage === "undefined") return;
  cleanup();
  localStorage.clear();
});
