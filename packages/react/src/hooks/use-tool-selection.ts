import { useCallback } from "react";
import { useSession } from "../context.js";
import { useStore } from "../store.js";
import { selectionKey, type Selection } from "../tools/selection.js";

export interface ToolSelection {
  /** `"<serviceId>:<toolName>" -> boolean`; missing means selected. */
  selection: Selection;
  isSelected(serviceId: string, toolName: string): boolean;
  toggle(serviceId: string, toolName: string): void;
  select(serviceId: string, toolNames: string | readonly string[], selected: boolean): void;
}

/** Which tools people picked, in step with this tab and others. The next request follows it. */
export function useToolSelection(): ToolSelection {
  const { selection: store } = useSession();
  const selection = useStore(store);
  const select = useCallback(
    (serviceId: string, toolNames: string | readonly string[], selected: boolean) => {
      const names = typeof toolNames === "string" ? [toolNames] : toolNames;
      store.select(names.map((name) => selectionKey(serviceId, name)), selected);
    },
    [store],
  );
  return {
    selection,
    isSelected: (serviceId, toolName) => selection[selectionKey(serviceId, toolName)] !== false,
    toggle: (serviceId, toolName) => select(serviceId, toolName, !store.isSelected(selectionKey(serviceId, toolName))),
    select,
  };
}
