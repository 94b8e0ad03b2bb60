//! L1: readers that follow spaces in which nothing happens, then one message
//! here and there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Amounts;
use super::meter::{Meter, count, real, spread};
use crate::clock::now_ns;
use crate::drive::DriveError;
use crate::drive::api::{Api, Native, Seat};
use crate::drive::load::seats;
use crate::drive::report::Figures;
use crate::drive::rounds::{Plan, Stage};
use crate::drive::stamps::Stamps;
use crate::drive::system::resident_kb;
use crate::drive::target::Target;

const NAME: &str = "L1 idle readers";
/// Readers of one space.
const TOGETHER: usize = 10;
/// Messages that are sent while all listen, and the time for each to be heard.
const MESSAGES: usize = 200;
const HEARD: Duration = Duration::from_secs(20);
/// Connections that are opened at once.
const OPENING: usize = 64;

pub(super) async fn idle(plan: &Plan, amounts: Amounts, figures: &mut Figures) -> Result<(), DriveError> {
    let stage = Stage::set(plan, Target::Toolyard).await?;
    let subject = &stage.subject;
    let spaces = seats(&subject.api, amounts.readers.div_ceil(TOGETHER)).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = resident_kb(subject.pid)?;
    let crowd = Crowd::gather(&subject.api, &spaces, amounts.readers).await?;
    let meter = Meter::start(NAME, subject.pid)?;
    tokio::time::sleep(Duration::from_secs(amounts.idle_seconds)).await;
    meter.stop(figures)?;
    let grown = resident_kb(subject.pid)? - before;
    figures.note(NAME, Target::Toolyard, "kb_per_reader", grown / count(amounts.readers));
    crowd.listen(&subject.api, &spaces, figures).await
}

/// Readers that stay.
struct Crowd {
    heard: mpsc::UnboundedReceiver<u64>,
    left: Arc<AtomicUsize>,
    readers: JoinSet<()>,
}

impl Crowd {
    async fn gather(api: &Arc<Api>, spaces: &[Seat], wanted: usize) -> Result<Self, DriveError> {
        let (tell, heard) = mpsc::unbounded_channel();
        let (left, mut readers) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
        let paths: Vec<String> = spaces.iter().cycle().take(wanted).map(Native::space_stream).collect();
        for some in paths.chunks(OPENING) {
            let native = native(api)?;
            let opened = some.iter().map(|path| native.open(path));
            for mut stream in futures::future::try_join_all(opened).await? {
                let (tell, left) = (tell.clone(), left.clone());
                readers.spawn(async move {
                    let mut stamps = Stamps::default();
                    while let Ok(Some(bytes)) = stream.next().await {
                        let now = now_ns();
                        // Nobody listens any more when all is over.
                        stamps.push(&bytes, |sent| {
                            let _ = tell.send(now.saturating_sub(sent));
                        });
                    }
                    left.fetch_add(1, Ordering::Relaxed);
                });
            }
        }
        Ok(Self { heard, left, readers })
    }

    /// Messages in spaces here and there: how long until each reader has heard?
    async fn listen(
        mut self,
        api: &Arc<Api>,
        spaces: &[Seat],
        figures: &mut Figures,
    ) -> Result<(), DriveError> {
        let readers = self.readers.len();
        let (mut delays, mut unheard) = (Vec::new(), 0);
        let step = (spaces.len() / MESSAGES).max(1);
        for space in spaces.iter().step_by(step).take(MESSAGES) {
            native(api)?.add_history(space, &[format!("~{} ", now_ns())]).await?;
            let mut missing = TOGETHER.min(readers);
            while missing > 0 {
                match tokio::time::timeout(HEARD, self.heard.recv()).await {
                    Ok(Some(delay)) => {
                        delays.push(real(delay) / 1e6);
                        missing -= 1;
                    }
                    _ => break,
                }
            }
            unheard += missing;
        }
        spread(figures, NAME, ["message_p50_ms", "message_p99_ms"], &delays);
        let errors = self.left.load(Ordering::Relaxed) + unheard;
        figures.note(NAME, Target::Toolyard, "errors", count(errors));
        Ok(())
    }
}

pub(super) fn native(api: &Arc<Api>) -> Result<&Native, DriveError> {
    match &**api {
        Api::Native(native) => Ok(native),
        _ => Err(DriveError::Failed("only the gateway is loaded".to_owned())),
    }
}
