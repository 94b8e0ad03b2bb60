import { useState, type ReactElement } from "react";
import { useToolRegistry } from "../hooks/use-tool-registry.js";
import { useToolSelection } from "../hooks/use-tool-selection.js";
import type { RegistryService } from "../tools/registry.js";
import { riskLabel } from "../tools/risk.js";

export interface ToolPickerProps {
  /** Also show what this agent has on the gateway. */
  agent?: string | true;
  className?: string;
}

/** Picks tools by service. The next message uses what is picked. */
export function ToolPicker({ agent, className = "" }: ToolPickerProps): ReactElement {
  const { services, isLoading, error } = useToolRegistry({ agent });
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const shown = services
    .map((service) => ({
      service,
      tools: service.tools.filter(({ toolName, description }) => `${toolName} ${description}`.toLowerCase().includes(wanted)),
    }))
    .filter(({ tools }) => tools.length > 0);
  return (
    <div className={`toolyard-picker ${className}`}>
      <input type="search" aria-label="Search tools" placeholder="Search tools" value={search} onChange={(event) => setSearch(event.target.value)} />
      {error && <p role="alert">{error.message}</p>}
      {shown.length === 0 && <p>{isLoading ? "Loading tools…" : wanted ? "No tool fits." : "There are no tools."}</p>}
      {shown.map(({ service, tools }) => (
        <Service key={service.serviceId} service={service} tools={tools} />
      ))}
    </div>
  );
}

function Service({ service, tools }: { service: RegistryService; tools: RegistryService["tools"] }): ReactElement {
  const { select, toggle } = useToolSelection();
  const names = service.tools.map((tool) => tool.toolName);
  const all = service.selected === service.tools.length;
  return (
    <fieldset>
      <legend>
        {service.title} <small>{`${service.selected}/${service.tools.length} selected`}</small>
      </legend>
      <button type="button" onClick={() => select(service.serviceId, names, !all)}>
        {all ? "Deselect all" : "Select all"}
      </button>
      <ul>
        {tools.map((tool) => (
          <li key={tool.key}>
            <label>
              <input type="checkbox" checked={tool.selected} onChange={() => toggle(tool.serviceId, tool.toolName)} />
              <code>{tool.toolName}</code>
            </label>{" "}
            <span className="toolyard-risk" data-risk={tool.riskLevel}>
              {riskLabel(tool.riskLevel)}
            </span>
            <p>{tool.description}</p>
          </li>
        ))}
      </ul>
    </fieldset>
  );
}
