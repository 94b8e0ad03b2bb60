import { createContext, useContext } from "react";
import type { Session } from "./session.js";

/** The session of the nearest provider. */
export const SessionContext = createContext<Session | undefined>(undefined);

/** The session of the nearest provider; without one it throws. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("Toolyard's hooks and components need a <ToolyardChatProvider> around them");
  return session;
}
