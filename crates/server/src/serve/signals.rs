//! Stop signals.

/// Returns at the first SIGTERM or SIGINT. A second one ends the process at once.
pub(super) async fn stop() {
    one().await;
    // The second one is for whoever does not want to wait.
    std::thread::Builder::new()
        .name("second-signal".to_owned())
        .spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            if let Ok(runtime) = runtime {
                runtime.block_on(one());
                std::process::exit(130);
            }
        })
        .map(drop)
        .unwrap_or_else(|error| tracing::warn!(%error, "a second signal will not be heard"));
}

#[cfg(unix)]
async fn one() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("signals cannot be heard; the gateway ends only by kill");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

#[cfg(not(unix))]
async fn one() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
