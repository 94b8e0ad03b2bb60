import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// Components as a person meets them, without a gateway. What needs one is told
// by the stories.
export default defineConfig({
  resolve: {
    alias: {
      "@toolyard/client/mcp-http": source("../../packages/client/src/mcp/http.ts"),
      "@toolyard/client": source("../../packages/client/src/index.ts"),
      "@toolyard/react": source("../../packages/react/src/index.ts"),
    },
    dedupe: ["react", "react-dom"],
  },
  test: {
    environment: "jsdom",
    include: ["tests/components/**/*.test.tsx"],
    setupFiles: ["tests/components/setup.ts"],
    testTimeout: 60_000,
  },
});
