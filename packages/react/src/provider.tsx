import { useEffect, useMemo, useState, type ReactElement, type ReactNode } from "react";
import { SessionContext } from "./context.js";
import { Session, type SessionOptions } from "./session.js";

export interface ToolyardChatProviderProps extends SessionOptions {
  children?: ReactNode;
}

/**
 * Connects everything inside to a gateway. Another gateway, entity or public
 * key begins a new session; other props are taken as they come.
 */
export function ToolyardChatProvider({ children, ...options }: ToolyardChatProviderProps): ReactElement {
  const { gatewayUrl, entityId, publicKey } = options;
  const who = `${gatewayUrl} ${entityId ?? ""} ${typeof publicKey === "string" ? publicKey : ""}`;
  const [kept, keep] = useState(() => ({ who, session: new Session(options) }));
  // Made while rendering, so that no child sees the session of somebody else.
  const session = useMemo(() => (kept.who === who ? kept.session : new Session(options)), [kept, who]);
  useEffect(() => {
    if (kept.session !== session) keep({ who, session });
  }, [kept, session, who]);
  useEffect(() => session.hold(), [session]);
  useEffect(() => session.update(options));
  return <SessionContext.Provider value={session}>{children}</SessionContext.Provider>;
}
