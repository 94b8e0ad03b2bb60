//! Replies as vendors send them, and the lines they must become.

use futures::StreamExt;
use toolyard_egress::{Door, Target};
use toolyard_models::openai::{Decoder, OpenAi};
use toolyard_models::wire::{Decode, Timeouts};
use toolyard_models::{ChatTurn, Chunk, Model, ModelError, Request, Retry};

use std::time::Duration;

pub(crate) struct Fixture {
    pub name: &'static str,
    pub bytes: &'static [u8],
    pub lines: &'static str,
}

impl Fixture {
    /// The reply is told in exactly these lines. `TOOLYARD_BLESS=1` writes them
    /// anew.
    pub(crate) fn is_told_as(&self, lines: &str) {
        if std::env::var_os("TOOLYARD_BLESS").is_none() {
            assert_eq!(lines, self.lines, "{}", self.name);
            return;
        }
        // Those of the first wire have short names.
        let name =
            if self.name.contains('/') { self.name.to_owned() } else { format!("openai/{}", self.name) };
        let file = format!("{}/tests/fixtures/{name}.lines", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(file, lines).unwrap();
    }
}

macro_rules! fixture {
    ($name:literal) => {
        Fixture {
            name: $name,
            bytes: include_bytes!(concat!("../fixtures/openai/", $name, ".sse")),
            lines: include_str!(concat!("../fixtures/openai/", $name, ".lines")),
        }
    };
}

pub(crate) const ALL: [Fixture; 6] = [
    fixture!("text"),
    fixture!("parallel_calls"),
    fixture!("search"),
    fixture!("local_quirks"),
    fixture!("router"),
    fixture!("hosts"),
];

/// What a reply came to: its chunks, and an error if it did not end well.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub chunks: Vec<Chunk>,
    pub error: Option<ModelError>,
}

impl Outcome {
    pub(crate) fn lines(&self) -> String {
        let line = |chunk| serde_json::to_string(chunk).unwrap() + "\n";
        self.chunks.iter().map(line).collect()
    }

    pub(crate) fn text(&self) -> String {
        let text = self.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::TextDelta { text } => Some(text.as_str()),
            _ => None,
        });
        text.collect()
    }

    /// Exactly one end: a finish as the last chunk, or an error.
    pub(crate) fn ends_once(&self) -> bool {
        let finishes = |chunk: &&Chunk| matches!(chunk, Chunk::Finish { .. });
        match (&self.error, self.chunks.iter().filter(finishes).count()) {
            (Some(_), finishes) => finishes == 0,
            (None, finishes) => finishes == 1 && matches!(self.chunks.last(), Some(Chunk::Finish { .. })),
        }
    }
}

/// Feeds these pieces to a decoder.
pub(crate) fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut decoder = Decoder::default();
    let mut chunks = Vec::new();
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut chunks) {
            return Outcome { chunks, error: Some(error) };
        }
    }
    let error = decoder.end(&mut chunks).err();
    Outcome { chunks, error }
}

/// Small waits, so that a failing vendor is seen to fail at once.
pub(crate) fn hasty() -> Timeouts {
    Timeouts {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(10),
        stall: Duration::from_secs(10),
        tail: Duration::from_secs(10),
    }
}

pub(crate) fn model_at(base_url: &str) -> OpenAi {
    let door = Door::operator().unwrap();
    let target = Target::parse(base_url).unwrap();
    OpenAi::new("local", door, &target, Some("sk-canary-0123456789".into()))
        .with_timeouts(hasty())
        .with_retry(Retry { max: 2, pause: Duration::from_millis(1) })
}

pub(crate) fn asking(text: &str) -> Request {
    Request { model: "m".into(), turns: vec![ChatTurn::user(text)], ..Request::default() }
}

pub(crate) async fn collect(model: &dyn Model, request: Request) -> Outcome {
    let mut stream = model.stream(request);
    let mut chunks = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(chunk) => chunks.push(chunk),
            Err(error) => {
                assert!(stream.next().await.is_none(), "nothing follows an error");
                return Outcome { chunks, error: Some(error) };
            }
        }
    }
    Outcome { chunks, error: None }
}
