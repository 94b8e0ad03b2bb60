/** What a tool is called here, and whom a call of it goes to. */
export interface Named {
  server: string;
  tool: string;
  name: string;
}

const LONGEST = 64;
const DIGITS = 8;

/**
 * Names tools `mcp_<server>_<tool>`, as the chat accepts them. A name depends
 * on its own tool alone, unless two would have the same one: then, and when it
 * is too long, it ends in digits of a hash that stay the same.
 */
export async function nameTools(tools: readonly { server: string; tool: string }[]): Promise<Named[]> {
  const plain = tools.map(({ server, tool }) => `mcp_${clean(server)}_${clean(tool)}`);
  return Promise.all(
    tools.map(async ({ server, tool }, at) => {
      const name = plain[at] ?? "";
      const untouched = name === `mcp_${server}_${tool}`;
      const rivals = plain.filter((other, place) => other === name && place !== at);
      const rightful = tools.some((each, place) => place !== at && name === `mcp_${each.server}_${each.tool}`);
      // Of several, the one that had this name all along keeps it.
      const keeps = rivals.length === 0 || (untouched && !rightful);
      if (keeps && name.length <= LONGEST) return { server, tool, name };
      return { server, tool, name: `${name.slice(0, LONGEST - DIGITS - 1)}_${await digits(server, tool)}` };
    }),
  );
}

function clean(text: string): string {
  return text.replace(/[^A-Za-z0-9_]/g, "_");
}

async function digits(server: string, tool: string): Promise<string> {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify([server, tool])));
  return Array.from(new Uint8Array(bytes).slice(0, DIGITS / 2), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
