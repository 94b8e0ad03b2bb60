import type { Risk } from "@toolyard/client";

const HIGH = new Set(["delete", "create", "update", "modify"]);
const MEDIUM = new Set(["write", "send", "execute", "run"]);

/** The words of a name in snake, kebab or camel form. */
function words(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean);
}

/** The risk that a name suggests. The gateway decides; this is for a label. */
export function riskOf(name: string, stated?: Risk): Risk {
  const found = words(name);
  const named: Risk = found.some((word) => HIGH.has(word)) ? "high" : found.some((word) => MEDIUM.has(word)) ? "medium" : "low";
  const order: Risk[] = ["low", "medium", "high"];
  return stated && order.indexOf(stated) > order.indexOf(named) ? stated : named;
}

/** A risk in words for people. */
export function riskLabel(risk: Risk): string {
  return { low: "Low Risk", medium: "Medium Risk", high: "High Risk" }[risk];
}
