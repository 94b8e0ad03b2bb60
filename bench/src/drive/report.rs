//! Figures of all rounds, as tables for people and JSON for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::DriveError;
use super::goals::{Judged, judge};
use super::ratios::{ratio_json, ratio_table};
use super::stats::median;
use super::target::Target;

type ByTarget = BTreeMap<Target, BTreeMap<&'static str, Vec<f64>>>;

/// Values by scenario, server and figure; one per round.
#[derive(Debug, Default)]
pub(super) struct Figures {
    values: BTreeMap<String, ByTarget>,
    /// What a server could not do, and why.
    remarks: Vec<String>,
}

impl Figures {
    pub(super) fn note(&mut self, scenario: &str, target: Target, figure: &'static str, value: f64) {
        let targets = self.values.entry(scenario.to_owned()).or_default();
        targets.entry(target).or_default().entry(figure).or_default().push(value);
    }

    /// The median over the rounds.
    pub(super) fn get(&self, scenario: &str, target: Target, figure: &str) -> Option<f64> {
        self.values.get(scenario)?.get(&target)?.get(figure).map(|values| median(values))
    }

    /// A cost of one server over that of another: the median over the rounds in
    /// which both were measured.
    pub(super) fn ratio(&self, scenario: &str, figure: &str, one: Target, other: Target) -> Option<f64> {
        let of = |target| self.values.get(scenario)?.get(&target)?.get(figure);
        let (ones, others) = (of(one)?, of(other)?);
        if ones.len() != others.len() {
            return Some(median(ones) / median(others));
        }
        let each: Vec<f64> = ones.iter().zip(others).map(|(one, other)| one / other).collect();
        Some(median(&each))
    }

    /// How many times a figure of one scenario is that of another.
    pub(super) fn growth(&self, target: Target, of: &str, over: &str, figure: &str) -> Option<f64> {
        let over = self.get(over, target, figure)?;
        // What is zero at the start has no ratio; one tick of the clock has.
        Some(self.get(of, target, figure)? / over.max(0.01))
    }

    /// Whether anything was measured of a server.
    pub(super) fn knows(&self, target: Target) -> bool {
        self.values.values().any(|targets| targets.contains_key(&target))
    }

    pub(super) fn remark(&mut self, scenario: &str, target: Target, why: &str) {
        let remark = format!("{scenario}, {}: not measured; {why}", target.name());
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// A server of other people that fails is reported; one of ours ends the
    /// measurement.
    pub(super) fn excuse(
        &mut self,
        scenario: &str,
        target: Target,
        done: Result<(), DriveError>,
    ) -> Result<(), DriveError> {
        match done {
            Err(why) if target.is_peer() => {
                eprintln!("  {scenario}: {why}");
                self.remark(scenario, target, &why.to_string());
                Ok(())
            }
            other => other,
        }
    }

    fn tables(&self) -> String {
        let mut text = String::new();
        for (scenario, targets) in &self.values {
            let mut columns: Vec<&str> = targets.values().flat_map(|f| f.keys().copied()).collect();
            columns.sort_unstable();
            columns.dedup();
            let rows = targets.keys().map(|target| {
                let cell = |c: &&str| self.get(scenario, *target, c).map_or("-".to_owned(), number);
                let cells = columns.iter().map(cell);
                std::iter::once(target.name().to_owned()).chain(cells).collect()
            });
            let head: Vec<&str> = std::iter::once("server").chain(columns.iter().copied()).collect();
            // Writing into a text cannot fail.
            let _ = writeln!(text, "### {scenario}\n\n{}", table(&head, rows.collect()));
        }
        text
    }

    /// One list of figures for each scenario, for a single server.
    fn lists(&self) -> String {
        let mut text = String::new();
        for (scenario, targets) in &self.values {
            let row =
                |(name, values): (&&'static str, &Vec<f64>)| vec![(*name).to_owned(), number(median(values))];
            let rows = targets.values().flatten().map(row).collect();
            // Writing into a text cannot fail.
            let _ = writeln!(text, "## {scenario}\n\n{}", table(&["figure", "value"], rows));
        }
        text
    }

    fn json(&self) -> Value {
        let mut all = serde_json::Map::new();
        for (scenario, targets) in &self.values {
            let mut of_scenario = serde_json::Map::new();
            for (target, figures) in targets {
                let medians: BTreeMap<_, _> =
                    figures.iter().map(|(name, values)| (*name, median(values))).collect();
                of_scenario.insert(target.name().to_owned(), json!({"median": medians, "rounds": figures}));
            }
            all.insert(scenario.clone(), Value::Object(of_scenario));
        }
        Value::Object(all)
    }
}

/// A number with about three digits that mean something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

pub(super) fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

fn goal_table(judged: &[Judged]) -> String {
    let row = |goal: &Judged| {
        let measured = goal.measured.map_or("not measured".to_owned(), number);
        let verdict = match goal.holds() {
            Some(true) => "holds",
            Some(false) => "MISSED",
            None => "-",
        };
        vec![
            goal.what.to_owned(),
            measured,
            format!("{} {}", goal.sign(), number(goal.bound)),
            verdict.to_owned(),
        ]
    };
    table(&["goal", "measured", "bound", "verdict"], judged.iter().map(row).collect())
}

/// Prints the tables and writes `latest.json` and `latest.md`.
pub(super) fn publish(figures: &Figures, conditions: &Value, folder: &Path) -> Result<(), DriveError> {
    let judged = judge(figures);
    let goals: Vec<Value> = judged
        .iter()
        .map(|g| json!({"goal": g.what, "measured": g.measured, "bound": g.bound, "holds": g.holds()}))
        .collect();
    let remarks: String = figures.remarks.iter().map(|remark| format!("- {remark}\n")).collect();
    let text = format!(
        "# Measured side by side\n\nCompare columns within this page only: times move from machine to machine.\n\nConditions: `{conditions}`\n\n## Beside the others\n\nMedians of the rounds' ratios. The first column has the gateway's own cost.\n\n{}\n{remarks}\n## Goals\n\n{}\n## Figures (medians of the rounds)\n\n{}",
        ratio_table(figures),
        goal_table(&judged),
        figures.tables()
    );
    println!("{text}");
    let whole = json!({
        "conditions": conditions,
        "sideBySide": ratio_json(figures),
        "remarks": figures.remarks,
        "goals": goals,
        "figures": figures.json(),
    });
    write(folder, "latest", &text, &whole)
}

/// Prints what a load took and writes `load.json` and `load.md`.
pub(super) fn publish_load(figures: &Figures, conditions: &Value, folder: &Path) -> Result<(), DriveError> {
    let text = format!("# Under load\n\nConditions: `{conditions}`\n\n{}", figures.lists());
    println!("{text}");
    write(folder, "load", &text, &json!({"conditions": conditions, "figures": figures.json()}))
}

fn write(folder: &Path, name: &str, text: &str, whole: &Value) -> Result<(), DriveError> {
    let whole = serde_json::to_string_pretty(whole).unwrap_or_default();
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(folder.join(format!("{name}.md")), text))
        .and_then(|()| fs::write(folder.join(format!("{name}.json")), whole + "\n"))
        .map_err(|e| DriveError::File(folder.display().to_string(), e))
}
