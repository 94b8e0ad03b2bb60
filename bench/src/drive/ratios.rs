//! The gateway beside each other server: ratios within one measurement, and
//! what they shall be.

use serde_json::{Value, json};

use super::report::{Figures, number, table};
use super::target::Target::{self, AiSdk, Direct, FloorDb, LangGraph, PydanticAi, Toolyard};

/// The servers that the gateway is compared with.
const OTHERS: [Target; 4] = [FloorDb, AiSdk, LangGraph, PydanticAi];

/// What is compared.
#[derive(Debug, Clone, Copy)]
struct Compared {
    what: &'static str,
    scenario: &'static str,
    figure: &'static str,
    /// Count only what comes on top of talking with the model directly.
    added: bool,
    /// At most so many times the bare durable server.
    floor: f64,
    /// At least so many times less than these; 0 means that nothing is promised.
    aisdk: f64,
    langgraph: f64,
}

const COMPARED: [Compared; 7] = [
    compared("text run of 100 pieces: CPU ms", "S1/c16", "cpu_ms", 1.3, 10.0, 40.0),
    compared("the same, every piece streamed: CPU ms", "S1-live/c16", "cpu_ms", 1.3, 10.0, 40.0),
    compared("gateway-tool run: CPU ms", "S2/c16", "cpu_ms", 1.5, 20.0, 60.0),
    compared("client-tool run (pause, answer, resume): CPU ms", "S3/c16", "cpu_ms", 1.5, 15.0, 60.0),
    compared(
        "500 streams, a piece every 20 ms: CPU µs per piece",
        "S4/500",
        "cpu_us_per_chunk",
        1.4,
        7.0,
        13.0,
    ),
    Compared {
        added: true,
        ..compared("added time to first text, p50 ms", "S1/c1", "ttft_p50_ms", 1.1, 10.0, 0.0)
    },
    Compared {
        added: true,
        ..compared("added time to first text, p99 ms", "S1/c1", "ttft_p99_ms", 1.4, 6.0, 0.0)
    },
];

const fn compared(
    what: &'static str,
    scenario: &'static str,
    figure: &'static str,
    floor: f64,
    aisdk: f64,
    langgraph: f64,
) -> Compared {
    Compared { what, scenario, figure, added: false, floor, aisdk, langgraph }
}

impl Compared {
    fn value(&self, f: &Figures, target: Target) -> Option<f64> {
        let value = f.get(self.scenario, target, self.figure)?;
        if !self.added {
            return Some(value);
        }
        let added = value - f.get(self.scenario, Direct, self.figure)?;
        // On a busy machine the direct way can be the slower one. That says nothing.
        (added > 0.0).then_some(added)
    }

    /// Cost of the one over cost of the other. Where both were measured in every
    /// round it is the median of the rounds' ratios, so that a noisy round does
    /// not compare with a quiet one.
    fn ratio(&self, f: &Figures, one: Target, other: Target) -> Option<f64> {
        if self.added {
            return Some(self.value(f, one)? / self.value(f, other)?);
        }
        f.ratio(self.scenario, self.figure, one, other)
    }

    fn against(&self, f: &Figures, other: Target) -> Option<Against> {
        let (ratio, bound, at_most) = match other {
            FloorDb => (self.ratio(f, Toolyard, other)?, self.floor, true),
            AiSdk => (self.ratio(f, other, Toolyard)?, self.aisdk, false),
            LangGraph => (self.ratio(f, other, Toolyard)?, self.langgraph, false),
            _ => (self.ratio(f, other, Toolyard)?, 0.0, false),
        };
        Some(Against { ratio, bound: (bound > 0.0).then_some(bound), at_most })
    }
}

/// One ratio and its bound.
#[derive(Debug)]
struct Against {
    ratio: f64,
    bound: Option<f64>,
    at_most: bool,
}

impl Against {
    fn holds(&self) -> Option<bool> {
        let bound = self.bound?;
        Some(if self.at_most { self.ratio <= bound } else { self.ratio >= bound })
    }

    fn cell(&self) -> String {
        let words = if self.at_most { "×" } else { "× less" };
        let goal = self.bound.map_or(String::new(), |bound| {
            format!(" ({} {})", if self.at_most { "≤" } else { "≥" }, number(bound))
        });
        let verdict = match self.holds() {
            Some(true) => ", holds",
            Some(false) => ", MISSED",
            None => "",
        };
        format!("{}{words}{goal}{verdict}", number(self.ratio))
    }
}

/// The table of ratios, without servers that were not measured.
pub(super) fn ratio_table(f: &Figures) -> String {
    let others: Vec<Target> = OTHERS.into_iter().filter(|t| f.knows(*t)).collect();
    let against = |t: &Target| format!("against {}", t.name());
    let head: Vec<String> =
        ["figure".to_owned(), "toolyard".to_owned()].into_iter().chain(others.iter().map(against)).collect();
    let rows = COMPARED.iter().filter_map(|compared| {
        let own = compared.value(f, Toolyard)?;
        let cell = |t: &Target| compared.against(f, *t).map_or("-".to_owned(), |a| a.cell());
        let mut row = vec![compared.what.to_owned(), number(own)];
        row.extend(others.iter().map(cell));
        Some(row)
    });
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    table(&head, rows.collect())
}

pub(super) fn ratio_json(f: &Figures) -> Value {
    let row = |compared: &Compared| {
        let mut against = serde_json::Map::new();
        for other in OTHERS {
            let Some(found) = compared.against(f, other) else { continue };
            let kind = if found.at_most { "times" } else { "timesLess" };
            let entry = json!({kind: found.ratio, "bound": found.bound, "holds": found.holds(), "value": compared.value(f, other)});
            against.insert(other.name().to_owned(), entry);
        }
        json!({"figure": compared.what, "toolyard": compared.value(f, Toolyard), "against": against})
    };
    Value::Array(COMPARED.iter().map(row).collect())
}
