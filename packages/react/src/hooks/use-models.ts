import { useEffect, useState } from "react";
import { useSession } from "../context.js";

/** A model that a request may name. */
export interface ModelView {
  id: string;
  name: string;
  description: string;
  provider: string;
  model: string;
  maxTokens: number;
  supportsToolCalling: boolean;
  supportsReasoning: boolean;
  /** Its provider has what it needs. */
  available: boolean;
}

/** The models of the gateway, for a selector. */
export function useModels(): { models: readonly ModelView[]; isLoading: boolean; error: Error | undefined } {
  const { client } = useSession();
  const [state, setState] = useState<{ models: readonly ModelView[]; isLoading: boolean; error: Error | undefined }>({
    models: [],
    isLoading: true,
    error: undefined,
  });
  useEffect(() => {
    let over = false;
    client
      .request<{ models: ModelView[] }>("GET", "/api/models")
      .then(({ models }) => !over && setState({ models, isLoading: false, error: undefined }))
      .catch((error: Error) => !over && setState({ models: [], isLoading: false, error }));
    return () => {
      over = true;
    };
  }, [client]);
  return state;
}
