import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

// A loaded machine is slow, not wrong. Whoever is rendered is rendered twice.
configure({ asyncUtilTimeout: 30_000, reactStrictMode: true });

afterEach(() => {
  cleanup();
  localStorage.clear();
});
