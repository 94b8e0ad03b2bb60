//! The last comparison as a picture: processor time of each server, on a
//! logarithmic scale, in colours that stand on a light and on a dark page.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// What a panel shows.
struct Panel {
    title: &'static str,
    unit: &'static str,
    scenario: &'static str,
    figure: &'static str,
}

const PANELS: [Panel; 4] = [
    Panel {
        title: "Text run, 100 pieces, each streamed",
        unit: "ms",
        scenario: "S1-live/c16",
        figure: "cpu_ms",
    },
    Panel { title: "Run with a tool of the server", unit: "ms", scenario: "S2/c16", figure: "cpu_ms" },
    Panel { title: "Run with a tool of the client", unit: "ms", scenario: "S3/c16", figure: "cpu_ms" },
    Panel { title: "One piece on 500 streams", unit: "µs", scenario: "S4/500", figure: "cpu_us_per_chunk" },
];

/// The servers in the order of the bars, and what people call them.
const SERVERS: [(&str, &str); 5] = [
    ("floor-db", "bare durable server"),
    ("toolyard", "Toolyard"),
    ("aisdk", "AI SDK server"),
    ("langgraph", "LangGraph, SQLite"),
    ("pydantic-ai", "Pydantic AI"),
];

const INK: &str = "#7d8590";
const OWN: &str = "#2f81f7";
const PLAIN: &str = "#9aa4af";

const WIDTH: f64 = 880.0;
const TOP: f64 = 66.0;
const PANEL_WIDTH: f64 = 440.0;
const PANEL_HEIGHT: f64 = 196.0;
/// Room for the names, and for the values behind the longest bar.
const NAMES: f64 = 138.0;
const VALUES: f64 = 108.0;
const BAR: f64 = 16.0;
const STEP: f64 = 25.0;

/// Reads a report and writes `performance.svg` into a folder.
pub fn draw(report: &Path, images: &Path) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(report)
        .map_err(|e| format!("{}: {e}; measure first: bench/run --peers", report.display()))?;
    let picture = picture(&serde_json::from_str(&text)?)?;
    fs::create_dir_all(images)?;
    fs::write(images.join("performance.svg"), picture)?;
    Ok(())
}

/// The picture of a report.
pub fn picture(report: &Value) -> Result<String, Box<dyn Error>> {
    let height = TOP + PANEL_HEIGHT * 2.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"{INK}\" role=\"img\">\n\
         <title>Processor time of the servers</title>\n\
         <text x=\"16\" y=\"24\" font-size=\"16\" font-weight=\"600\">Processor time of the server</text>\n\
         <text x=\"16\" y=\"44\">Less is better. Logarithmic scale. Behind each bar: the time, and how many times Toolyard's it is.</text>\n"
    );
    for (at, panel) in PANELS.iter().enumerate() {
        let (column, row) = (f64::from(u8::try_from(at % 2)?), f64::from(u8::try_from(at / 2)?));
        write!(svg, "<g transform=\"translate({} {})\">", column * PANEL_WIDTH, TOP + row * PANEL_HEIGHT)?;
        panel.draw(report, &mut svg)?;
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

impl Panel {
    fn value(&self, report: &Value, server: &str) -> Option<f64> {
        report.get("figures")?.get(self.scenario)?.get(server)?.get("median")?.get(self.figure)?.as_f64()
    }

    fn draw(&self, report: &Value, svg: &mut String) -> Result<(), Box<dyn Error>> {
        let Self { title, unit, scenario, .. } = self;
        let found =
            |(key, name): &(&'static str, &'static str)| Some((*key, *name, self.value(report, key)?));
        let bars: Vec<(&str, &str, f64)> = SERVERS.iter().filter_map(found).collect();
        let own = self.value(report, "toolyard").ok_or_else(|| format!("the report has no {scenario}"))?;
        let least = bars.iter().map(|b| b.2).fold(f64::INFINITY, f64::min);
        let most = bars.iter().map(|b| b.2).fold(0.0, f64::max);
        // Half a decade before the least, so that the least is a bar too.
        let scale = Scale { from: (least / 3.0).log10(), to: most.log10() };
        write!(svg, "<text x=\"16\" y=\"14\" font-weight=\"600\">{title}, {unit}</text>")?;
        scale.grid(bars.len(), svg)?;
        let mut y = 26.0;
        for (key, name, value) in bars {
            let (fill, weight) = if key == "toolyard" { (OWN, "600") } else { (PLAIN, "400") };
            let (end, middle) = (scale.at(value), y + BAR - 4.0);
            let times =
                if key == "toolyard" { String::new() } else { format!(" · {}×", short(value / own)) };
            write!(
                svg,
                "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\" font-weight=\"{weight}\">{name}</text>\
                 <rect x=\"{NAMES}\" y=\"{y}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\" fill=\"{fill}\"/>\
                 <text x=\"{:.1}\" y=\"{middle}\" font-weight=\"{weight}\">{}{times}</text>",
                NAMES - 8.0,
                end - NAMES,
                end + 6.0,
                short(value),
            )?;
            y += STEP;
        }
        Ok(())
    }
}

/// Powers of ten along a panel.
struct Scale {
    from: f64,
    to: f64,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        let room = PANEL_WIDTH - NAMES - VALUES;
        NAMES + room * (value.log10() - self.from) / (self.to - self.from)
    }

    fn grid(&self, bars: usize, svg: &mut String) -> Result<(), Box<dyn Error>> {
        let bottom = 22.0 + STEP * f64::from(u8::try_from(bars)?);
        let mut power = self.from.ceil();
        while power <= self.to {
            let x = self.at(10f64.powf(power));
            write!(
                svg,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"22\" y2=\"{bottom}\" stroke=\"{INK}\" stroke-opacity=\"0.35\" stroke-dasharray=\"2 3\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10\">{}</text>",
                bottom + 12.0,
                10f64.powf(power)
            )?;
            power += 1.0;
        }
        Ok(())
    }
}

/// A number with two or three digits that mean something.
fn short(value: f64) -> String {
    match value {
        v if v >= 10.0 => format!("{v:.0}"),
        v if v >= 1.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
