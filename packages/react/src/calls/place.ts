import { hasLocks, randomName } from "./exclusive.js";

const KEY = "toolyard_client";

/**
 * The name under which this page claims calls. Where tabs take turns by locks
 * it is one for the whole browser, so that a page that was reloaded gets its
 * own call back at once; else it is one per page.
 */
export function placeName(): string {
  if (!hasLocks()) return `page_${randomName()}`;
  try {
    const known = localStorage.getItem(KEY);
    if (known) return known;
    const name = `browser_${randomName()}`;
    localStorage.setItem(KEY, name);
    return name;
  } catch {
    return `page_${randomName()}`;
  }
}
