/** A gateway need not have the agent that was picked before, or its default one: then it is the first. */
export function chosen(agents: readonly { name: string }[], picked: string): string {
  return agents.some((row) => row.name === picked) ? picked : (agents[0]?.name ?? picked);
}
