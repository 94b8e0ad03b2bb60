// One gateway for all test files: the built binary with the demo model.
import type { TestProject } from "vitest/node";
import { Gateway } from "../../client/test/gateway.js";

declare module "vitest" {
  interface ProvidedContext {
    gatewayUrl: string;
  }
}

let gateway: Promise<Gateway> | undefined;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  gateway ??= Gateway.start();
  project.provide("gatewayUrl", (await gateway).url);
  return async () => (await gateway)?.stop();
}
