//! What happened, one record per line of JSON. Whoever plays writes it, and the
//! checker reads nothing else.

use std::io::{BufRead, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a tool does when it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// A client executes it and hands its own call's id back.
    Client,
    /// It has an effect outside, and a second one does harm.
    Outside,
    /// It has an effect outside, and the far side knows a repeat by its key.
    Repeatable,
    /// Its effect and its result are one commit.
    Prebuilt,
    /// The clock ends it.
    Timer,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum Record {
    /// The first line: how to play it again.
    Began {
        scenario: String,
        seed: u64,
        database: String,
    },
    Tool {
        name: String,
        nature: Nature,
    },
    /// Something was broken from one moment to another, in milliseconds.
    Fault {
        what: String,
        from: i64,
        to: i64,
    },
    /// A request with this key was answered: it made this run.
    Made {
        key: String,
        run: String,
    },
    /// A client's result was answered with a status.
    Handed {
        run: String,
        call: String,
        value: Value,
        status: u16,
    },
    /// An approval was answered with a status.
    Decided {
        run: String,
        call: String,
        allow: bool,
        status: u16,
    },
    /// A cancel was answered with a status.
    Canceled {
        run: String,
        status: u16,
    },
    /// A durable event as the gateway tells it to a secret key.
    Event {
        run: String,
        data: Value,
    },
    /// What the tables say of a run at the end.
    Row {
        run: String,
        status: String,
        last_seq: i64,
        open_waits: usize,
    },
    /// A reader that followed a run heard this durable event.
    Read {
        reader: String,
        run: String,
        seq: i64,
        name: String,
    },
    /// The far side did what a call asked for. `repeat`: it knew the key and did
    /// nothing. `cut`: it hung up instead of answering.
    Effect {
        call: String,
        at: i64,
        repeat: bool,
        cut: bool,
    },
    /// So many things exist that a prebuilt tool or a plan made for this mark.
    Kept {
        mark: String,
        count: usize,
        wanted: usize,
    },
    /// A node that was killed takes requests again, so long after its new start.
    Recovered {
        ms: u64,
    },
    /// So many commits failed by chance, or lost their answer.
    Failed {
        commits: usize,
    },
    /// A request heard 5xx from one moment to another, in milliseconds.
    Refused {
        asked: String,
        status: u16,
        from: i64,
        to: i64,
    },
    /// A client lost patience with a run.
    Stuck {
        run: String,
        why: String,
    },
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct History(pub Vec<Record>);

impl History {
    pub fn push(&mut self, record: Record) {
        self.0.push(record);
    }

    pub fn write(&self, file: &Path) -> std::io::Result<()> {
        let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
        for record in &self.0 {
            serde_json::to_writer(&mut out, record)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    pub fn read(file: &Path) -> std::io::Result<Self> {
        let lines = std::io::BufReader::new(std::fs::File::open(file)?).lines();
        let records = lines.map(|line| Ok(serde_json::from_str(&line?)?));
        records.collect::<std::io::Result<_>>().map(Self)
    }

    /// The ids of all runs that have events, in the order they appear.
    pub fn runs(&self) -> Vec<&str> {
        let mut seen: Vec<&str> = Vec::new();
        for record in &self.0 {
            if let Record::Event { run, .. } = record
                && seen.last() != Some(&run.as_str())
                && !seen.contains(&run.as_str())
            {
                seen.push(run);
            }
        }
        seen
    }

    pub fn count(&self, of: impl Fn(&Record) -> bool) -> usize {
        self.0.iter().filter(|record| of(record)).count()
    }
}
