import type { Session } from "../session.js";

/** What each request of a conversation says. Missing means: as the agent has it. */
export interface ChatSettings {
  agent?: string | undefined;
  model?: string | undefined;
  selectedToolCategories?: string[] | undefined;
  exactToolNames?: string[] | undefined;
  excludedTools?: string[] | undefined;
  /** More fields for the request. */
  body?: Record<string, unknown> | undefined;
}

/** What a request says beside its message: who answers, with which tools. Asked anew for each. */
export function requestBody({ options, registry }: Session, { body, ...settings }: ChatSettings): Record<string, unknown> {
  const clientTools = registry.definitions();
  const excluded = [...(settings.excludedTools ?? []), ...registry.excluded()];
  return given({
    agent: options.agent,
    model: options.model,
    // A backend's key says for whom it speaks; a user speaks for themselves.
    entityId: options.publicKey === undefined ? options.entityId : undefined,
    ...given({ ...settings }),
    clientTools: clientTools.length > 0 ? clientTools : undefined,
    excludedTools: excluded.length > 0 ? excluded : undefined,
    ...body,
  });
}

function given(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
