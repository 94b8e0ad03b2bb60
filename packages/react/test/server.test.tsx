// @vitest-environment node
// A page that is rendered on a server, and what the package exports.
import { renderToString } from "react-dom/server";
import { expect, test } from "vitest";
import * as everything from "../src/index.js";

test("the components render where there is no browser", () => {
  const { ToolyardChat, ToolyardChatProvider, ToolPicker, RunTimeline } = everything;
  const html = renderToString(
    <ToolyardChatProvider gatewayUrl="http://127.0.0.1:1" publicKey="pk" jwt="token">
      <ToolyardChat empty="Ask me" />
      <ToolPicker />
      <RunTimeline runId={undefined} />
    </ToolyardChatProvider>,
  );
  expect(html).toContain("Ask me");
});

test("without a provider a hook says what is missing", () => {
  const { ToolPicker } = everything;
  expect(() => renderToString(<ToolPicker />)).toThrow("need a <ToolyardChatProvider> around them");
});

test("what the package exports", () => {
  expect(Object.keys(everything).sort()).toMatchInlineSnapshot(`
    [
      "GATEWAY_SERVICE",
      "MCP_SERVICES_KEY",
      "PAGE_SERVICE",
      "PLUGINS_KEY",
      "PermissionCard",
      "RunTimeline",
      "SANDBOX_CHARS",
      "SANDBOX_PAGE",
      "SELECTION_KEY",
      "STORAGE_CHANGED",
      "ToolPicker",
      "ToolyardChat",
      "ToolyardChatProvider",
      "codeRunner",
      "handledTools",
      "hasOpenCalls",
      "historyOf",
      "isToolPart",
      "messageOf",
      "riskLabel",
      "riskOf",
      "runInFrame",
      "selectionKey",
      "toolNameOf",
      "useAutoToolHandler",
      "useMcpServices",
      "useModels",
      "usePermissions",
      "usePlugins",
      "useRunTimeline",
      "useToolRegistry",
      "useToolResult",
      "useToolSelection",
      "useToolyardChat",
      "useToolyardClient",
      "useWaits",
    ]
  `);
});
