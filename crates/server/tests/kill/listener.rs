//! A reader of a space from before the first message on: it hears every piece
//! that is streamed, and so it hears a model that speaks twice.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use toolyard_protocol::sse::{SseEvent, SseSplitter};

const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Listener {
    heard: Arc<Mutex<Vec<SseEvent>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Listener {
    pub(crate) fn on(mut response: reqwest::Response) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ears = heard.clone();
        let task = tokio::spawn(async move {
            let mut splitter = SseSplitter::new(8 << 20);
            while let Ok(Some(bytes)) = response.chunk().await {
                let mut events = Vec::new();
                splitter.push(&bytes, &mut events).unwrap();
                ears.lock().unwrap().extend(events);
            }
        });
        Self { heard, task }
    }

    /// All that was heard up to the end of the run: (name, data), in order.
    pub(crate) async fn until_the_end(self) -> Vec<(String, Value)> {
        let started = Instant::now();
        while started.elapsed() < PATIENCE && !self.task.is_finished() {
            let ends = ["run.completed", "run.failed"].map(Some);
            if self.heard.lock().unwrap().iter().any(|e| ends.contains(&e.event.as_deref())) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.task.abort();
        let heard = std::mem::take(&mut *self.heard.lock().unwrap());
        let named = heard.into_iter().filter_map(|e| Some((e.event?, e.data)));
        named.map(|(name, data)| (name, serde_json::from_str(&data).unwrap_or(Value::Null))).collect()
    }
}
