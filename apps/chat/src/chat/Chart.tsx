export interface Bars {
  title?: string;
  bars: { label: string; value: number }[];
}

const ROW = 30;
const LABEL = 120;
const WIDTH = 560;

/** A bar chart that reads well aloud, too. */
export function Chart({ title, bars }: Bars) {
  if (!Array.isArray(bars) || bars.length === 0) return null;
  const most = Math.max(...bars.map((bar) => Number(bar.value) || 0), 1);
  return (
    <figure className="chart">
      {title && <figcaption>{title}</figcaption>}
      <svg viewBox={`0 0 ${WIDTH} ${bars.length * ROW}`} role="img" aria-label={bars.map((bar) => `${bar.label}: ${bar.value}`).join(", ")}>
        {bars.map((bar, at) => {
          const length = (Math.max(0, Number(bar.value) || 0) / most) * (WIDTH - LABEL - 60);
          return (
            <g key={at} transform={`translate(0 ${at * ROW})`}>
              <text x={LABEL - 10} y={ROW / 2 + 4} textAnchor="end">
                {String(bar.label).slice(0, 18)}
              </text>
              <rect x={LABEL} y={5} width={Math.max(2, length)} height={ROW - 10} rx={4} />
              <text x={LABEL + length + 8} y={ROW / 2 + 4}>
                {Number(bar.value).toLocaleString()}
              </text>
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
