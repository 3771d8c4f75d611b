//! The task that writes the events of a recorder.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, watch};
use tokio::time::{self, Instant};

use super::record::Pending;
use super::sink::Sink;

/// Writes events until the queue is closed and empty; `done` counts them.
///
/// The Events that are due without a further event are written in between, and all unwritten ones at the end.
pub(super) async fn run(
    sink: Sink,
    mut events: mpsc::Receiver<Box<Pending>>,
    queued: Arc<AtomicUsize>,
    done: watch::Sender<u64>,
) {
    loop {
        // Computed again in each round, because each event may begin, extend or end a series.
        let due = sink.correlator.lock().next_due();
        let pending = tokio::select! {
            pending = events.recv() => pending,
            () = until(due) => {
                write_due(&sink, Some(Instant::now())).await;
                continue;
            }
        };
        let Some(pending) = pending else {
            return write_due(&sink, None).await;
        };
        let decision = sink.correlator.lock().observe(*pending);
        sink.act(decision).await;
        queued.fetch_sub(1, Ordering::Relaxed);
        done.send_modify(|done| *done += 1);
    }
}

/// Waits until an instant, or forever if there is none.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Writes the Events that are due now, or all unwritten ones without a time.
async fn write_due(sink: &Sink, now: Option<Instant>) {
    loop {
        let record = sink.correlator.lock().take_due(now);
        let Some(record) = record else {
            return;
        };
        sink.write(record, true).await;
    }
}
