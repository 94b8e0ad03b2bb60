import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// `npm run dev -w @toolyard/chat` shows the page with live changes; the
// gateway beside it answers the API.
const gateway = process.env["TOOLYARD_URL"] ?? "http://127.0.0.1:8787";

export default defineConfig({
  plugins: [react()],
  resolve: {
    // From its source: the page needs no second build.
    alias: {
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
