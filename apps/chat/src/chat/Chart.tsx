import { Fragment } from "react";

export interface Bars {
  title?: string;
  bars: { label: string; value: number }[];
}

/** A bar chart that reads well aloud, too. */
export function Chart({ title, bars }: Bars) {
  if (!Array.isArray(bars) || bars.length === 0) return null;
  const most = Math.max(...bars.map((bar) => Number(bar.value) || 0), 1);
  return (
    <figure className="chart">
      {title && <figcaption>{title}</figcaption>}
      <div className="bars" role="img" aria-label={bars.map((bar) => `${bar.label}: ${bar.value}`).join(", ")}>
        {bars.map((bar, at) => (
          <Fragment key={at}>
            <span className="cut">{String(bar.label)}</span>
            <i style={{ width: `${(Math.max(0, Number(bar.value) || 0) / most) * 100}%` }} />
            <b>{Number(bar.value).toLocaleString()}</b>
          </Fragment>
        ))}
      </div>
    </figure>
  );
}
