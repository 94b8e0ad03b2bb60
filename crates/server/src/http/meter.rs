//! Counters for `/metrics`. Labels never hold a tenant, a key or an id.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// Starts counting. Once per process.
pub(crate) fn start() -> Result<PrometheusHandle, String> {
    PrometheusBuilder::new().install_recorder().map_err(|e| e.to_string())
}

/// One answered request.
pub(crate) fn request(method: &str, route: &'static str, status: u16, seconds: f64) {
    let status = status.to_string();
    let method = method.to_owned();
    metrics::counter!("toolyard_requests_total", "method" => method, "route" => route, "status" => status)
        .increment(1);
    metrics::histogram!("toolyard_request_seconds", "route" => route).record(seconds);
}

/// Counts an open stream as long as it lives.
#[derive(Debug)]
pub(crate) struct Reader(());

impl Reader {
    pub(crate) fn enter() -> Self {
        metrics::gauge!("toolyard_sse_readers").increment(1.0);
        Self(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        metrics::gauge!("toolyard_sse_readers").decrement(1.0);
    }
}

/// Counts an open socket of a client as long as it lives.
#[derive(Debug)]
pub(crate) struct Socket(());

impl Socket {
    pub(crate) fn enter() -> Self {
        metrics::gauge!("toolyard_client_sockets").increment(1.0);
        Self(())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        metrics::gauge!("toolyard_client_sockets").decrement(1.0);
    }
}

/// A reader that was cut because it did not read.
pub(crate) fn reader_cut() {
    metrics::counter!("toolyard_sse_readers_cut_total").increment(1);
}
