import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { defineConfig } from "vitest/config";

const own = createRequire(import.meta.url);
const older = createRequire(resolve(import.meta.dirname, "../../tests/react-18/package.json"));

/** The same tests with another React. */
function project(name: string, find: NodeJS.Require) {
  const packages = ["react", "react-dom"];
  return {
    extends: true as const,
    resolve: {
      alias: [
        ...packages.map((each) => ({ find: new RegExp(`^${each}(?=/|$)`), replacement: dirname(find.resolve(`${each}/package.json`)) })),
        // Its other form asks Node.js for React, which knows only one.
        { find: /^@testing-library\/react$/, replacement: resolve(dirname(own.resolve("@testing-library/react")), "@testing-library/react.esm.js") },
      ],
    },
    test: {
      name,
      // For pages that the tests build themselves.
      env: { REACT_FOLDER: dirname(dirname(find.resolve("react/package.json"))) },
      // Whatever imports React must get this one.
      server: { deps: { inline: [/@ai-sdk\/react/, /@testing-library\/react/, /swr/, /use-sync-external-store/, /@toolyard/] } },
    },
  };
}

export default defineConfig({
  test: {
    environment: "jsdom",
    include: ["test/**/*.test.tsx"],
    setupFiles: ["test/setup.ts"],
    globalSetup: ["test/start-gateway.ts"],
    // The gateway is one, and machines that test have few cores.
    fileParallelism: false,
    testTimeout: 90_000,
    hookTimeout: 60_000,
    projects: [project("react 19", own), project("react 18", older)],
  },
});
