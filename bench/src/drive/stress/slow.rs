//! L3: readers that take a little now and then, beside readers that keep up.
//! The slow must cost no memory, hold up nobody, and miss nothing.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Amounts;
use super::meter::{Meter, count, real, spread};
use super::readers::native;
use crate::drive::DriveError;
use crate::drive::api::Native;
use crate::drive::errand::Errand;
use crate::drive::load::{seats, try_load};
use crate::drive::report::Figures;
use crate::drive::rounds::{Plan, Stage};
use crate::drive::stamps::Stamps;
use crate::drive::target::Target;

const NAME: &str = "L3 slow readers";
/// What a slow reader is owed, and how it takes it.
const PIECES: u32 = 2_000;
const SIP: usize = 1 << 10;
const SIP_EVERY: Duration = Duration::from_millis(100);
const SLOW_FOR: Duration = Duration::from_secs(20);
/// Bytes that the system holds for a slow reader: the least that it allows.
const WINDOW: u32 = 4 << 10;
/// The longest that a slow reader takes in all.
const PATIENCE: Duration = Duration::from_secs(180);
/// Readers that keep up meanwhile, and their rounds.
const QUICK: usize = 20;
const ROUNDS: usize = 8;

pub(super) async fn slow(plan: &Plan, amounts: Amounts, figures: &mut Figures) -> Result<(), DriveError> {
    let stage = Stage::set(plan, Target::Toolyard).await?;
    let subject = &stage.subject;
    subject.warm_up().await?;
    let slow = seats(&subject.api, amounts.slow).await?;
    let quick = seats(&subject.api, QUICK * ROUNDS).await?;
    let meter = Meter::start(NAME, subject.pid)?;
    let mut sipping = JoinSet::new();
    let prompt = Errand { first_ms: 1_000, ..Errand::text(PIECES) }.prompt();
    for seat in &slow {
        let run = native(&subject.api)?.start(seat, &prompt).await?;
        let (address, request) = native(&subject.api)?.raw_stream(&run);
        sipping.spawn(tokio::time::timeout(PATIENCE, sip(address, request)));
    }
    let errand = Errand { first_ms: 20, delay_ms: 20, ..Errand::text(100) };
    let (watches, mut errors) = try_load(&subject.api, &quick, errand, QUICK).await;
    let mut lost = 0;
    while let Some(done) = sipping.join_next().await {
        match done {
            Ok(Ok(Ok(pieces))) => lost += usize::try_from(PIECES.saturating_sub(pieces)).unwrap_or(0),
            _ => errors += 1,
        }
    }
    meter.stop(figures)?;
    let delays: Vec<f64> = watches.iter().flat_map(|w| &w.delays).map(|d| real(*d) / 1e6).collect();
    spread(figures, NAME, ["quick_piece_p50_ms", "quick_piece_p99_ms"], &delays);
    let mut note = |figure, value| figures.note(NAME, Target::Toolyard, figure, value);
    note("lost_pieces", count(lost));
    note("errors", count(errors));
    Ok(())
}

/// Reads little by little for a while, then the rest. Gives the pieces of text.
async fn sip(address: std::net::SocketAddr, request: String) -> std::io::Result<u32> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(WINDOW)?;
    let mut stream = socket.connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let (mut stamps, mut room) = (Stamps::default(), [0; SIP]);
    let until = Instant::now() + SLOW_FOR;
    loop {
        let got = stream.read(&mut room).await?;
        if got == 0 {
            return Ok(stamps.count());
        }
        stamps.push(room.get(..got).unwrap_or_default(), |_| ());
        if Instant::now() < until {
            tokio::time::sleep(SIP_EVERY).await;
        }
    }
}

impl Native {
    /// A request of a run's stream as bytes, for a reader with its own socket.
    fn raw_stream(&self, run: &str) -> (std::net::SocketAddr, String) {
        let (address, key) = (self.address(), crate::drive::api::SECRET_KEY);
        let path = Self::run_stream(run);
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nx-secret-key: {key}\r\nconnection: close\r\n\r\n"
        );
        (address, head)
    }
}
