import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { SANDBOX_PAGE } from "../../packages/react/src/plugins/sandbox.ts";

// `npm run dev -w @toolyard/chat` shows the page with live changes; the
// gateway beside it answers the API.
const gateway = process.env["TOOLYARD_URL"] ?? "http://127.0.0.1:8787";

/** The room for plugin code is the React package's own page, under an address. */
function sandboxPage(): Plugin {
  const fileName = "sandbox.html";
  return {
    name: "sandbox-page",
    generateBundle() {
      this.emitFile({ type: "asset", fileName, source: SANDBOX_PAGE });
    },
    configureServer({ middlewares }) {
      middlewares.use(`/${fileName}`, (_, answer) => answer.setHeader("content-type", "text/html").end(SANDBOX_PAGE));
    },
  };
}

export default defineConfig({
  plugins: [react(), sandboxPage()],
  resolve: {
    // From its source: the page needs no second build.
    alias: {
      "@toolyard/client/mcp-http": fileURLToPath(new URL("../../packages/client/src/mcp/http.ts", import.meta.url)),
      "@toolyard/client": fileURLToPath(new URL("../../packages/client/src/index.ts", import.meta.url)),
      "@toolyard/react": fileURLToPath(new URL("../../packages/react/src/index.ts", import.meta.url)),
    },
    dedupe: ["react", "react-dom"],
  },
  build: {
    target: "es2022",
    // The policy of the page allows no inline anything.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 900,
  },
  server: { port: 5173, proxy: { "/api": { target: gateway, changeOrigin: true, headers: { origin: gateway } } } },
});
