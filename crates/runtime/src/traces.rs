//! Spans leave the gateway: in batches, as OTLP in JSON over HTTP, by the same
//! door as everything else. What a collector does not take is lost; runs do not
//! wait for it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolyard_egress::{Door, Header, Letter, Patience, Target, Verb};
use toolyard_engine::Run;
use toolyard_plugins::hooks::{Span, SpanKind};
use toolyard_plugins::shipped::passed_on;
use toolyard_protocol::limits::{TRACE_BATCH, TRACE_QUEUE};
use toolyard_protocol::{CallId, TraceParent};

use crate::runtime::Runtime;
use crate::worker::TOGETHER;

/// How long a collector may take.
const TOTAL: Duration = Duration::from_secs(10);

/// Where spans go.
#[derive(Debug)]
pub struct Collector {
    pub door: Door,
    pub target: Target,
    pub headers: Vec<Header>,
}

/// The way to the collector. Nobody waits on it: what does not fit is lost.
pub(crate) type Traced = mpsc::Sender<Vec<Span>>;

/// The span of a call, for whoever does it. None if nobody traces the run.
pub(crate) fn trace_of(run: &Run, call: &CallId) -> Option<TraceParent> {
    passed_on(run.plugin_state(TOGETHER)?.as_object()?, Some(call))
}

impl Runtime {
    /// Sends the spans of runs to a collector from now on.
    pub fn export_traces(self: &Arc<Self>, collector: Collector) {
        let (sender, spans) = mpsc::channel(TRACE_QUEUE);
        if self.traced.set(sender).is_ok() {
            self.tasks().spawn("traces", run(self.clone(), collector, spans));
        }
    }

    /// Hands spans over, if anybody wants them.
    pub(crate) fn trace(&self, spans: Vec<Span>) {
        let Some(traced) = self.traced.get().filter(|_| !spans.is_empty()) else { return };
        if traced.try_send(spans).is_err() {
            tracing::warn!("spans are lost: more than {TRACE_QUEUE} pieces wait for the collector");
        }
    }
}

async fn run(runtime: Arc<Runtime>, collector: Collector, mut spans: mpsc::Receiver<Vec<Span>>) {
    let stop = runtime.stop_token().clone();
    let over = runtime.handing_back.clone();
    loop {
        let mut batch = tokio::select! {
            biased;
            more = spans.recv() => match more {
                Some(spans) => spans,
                None => return,
            },
            () = stop.cancelled() => return,
        };
        while batch.len() < TRACE_BATCH {
            match spans.try_recv() {
                Ok(more) => batch.extend(more),
                Err(_) => break,
            }
        }
        if over.run_until_cancelled(send(&collector, &batch)).await.is_none() {
            return;
        }
    }
}

async fn send(collector: &Collector, spans: &[Span]) {
    let body = Bytes::from(document(spans).to_string());
    let letter = Letter {
        verb: Verb::Post,
        target: &collector.target,
        headers: &collector.headers,
        accept: "application/json",
        body: Some(body),
        patience: Patience { head: TOTAL, idle: TOTAL, bytes: 64 << 10 },
    };
    match collector.door.ask(letter, TOTAL).await {
        Ok(whole) if (200..300).contains(&whole.status) => {}
        Ok(whole) => {
            tracing::warn!(status = whole.status, spans = spans.len(), "the collector refuses spans");
        }
        Err(error) => tracing::warn!(%error, spans = spans.len(), "spans do not reach the collector"),
    }
}

/// An export request of the protocol.
fn document(spans: &[Span]) -> Value {
    let service = json!([{ "key": "service.name", "value": { "stringValue": "toolyard" } }]);
    let scope = json!({ "name": "toolyard", "version": env!("CARGO_PKG_VERSION") });
    let spans: Vec<Value> = spans.iter().map(written).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": service },
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }] })
}

fn written(span: &Span) -> Value {
    let attributes: Vec<Value> =
        span.attributes.iter().map(|(key, value)| json!({ "key": key, "value": attribute(value) })).collect();
    let mut out = json!({
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": match span.kind {
            SpanKind::Internal => 1,
            SpanKind::Client => 3,
        },
        // 64-bit numbers are texts in this form.
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": attributes,
        "status": match &span.error {
            Some(error) => json!({ "code": 2, "message": error }),
            // That it went well is not for those who trace to say.
            None => json!({}),
        },
    });
    if let Some(parent) = &span.parent {
        out["parentSpanId"] = json!(parent);
    }
    out
}

fn attribute(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => json!({ "boolValue": flag }),
        Value::Number(number) if number.is_f64() => json!({ "doubleValue": number }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::String(text) => json!({ "stringValue": text }),
        Value::Array(items) if !items.iter().any(|item| item.is_object() || item.is_array()) => {
            let values: Vec<Value> = items.iter().map(attribute).collect();
            json!({ "arrayValue": { "values": values } })
        }
        other => json!({ "stringValue": other.to_string() }),
    }
}
