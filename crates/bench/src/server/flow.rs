//! Whether watches may send what they have: at once, not yet, or line by line at a pace.

use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time::{self, Instant};

/// What is true of all watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// Lines go out as fast as clients read.
    Free,
    /// Nothing goes out.
    Held,
    /// In each watch the first line is due at a time, and one more after each interval.
    ///
    /// Intervals are counted from the beginning, so that watches keep step with each other, and a line that
    /// goes out late delays none behind it.
    Paced { since: Instant, every: Duration },
}

/// The gate before one watch.
#[derive(Debug)]
pub(super) struct Gate {
    flow: Receiver<Flow>,
    /// When the pace began to which `lines` belong.
    since: Option<Instant>,
    /// How many lines have passed at that pace.
    lines: u32,
}

impl Gate {
    pub(super) fn new(flow: Receiver<Flow>) -> Self {
        Self {
            flow,
            since: None,
            lines: 0,
        }
    }

    /// Waits until the next line may go out; returns whether it goes at a pace.
    pub(super) async fn pass(&mut self) -> bool {
        let Flow::Paced { since, every } = released(&mut self.flow).await else {
            return false;
        };
        // A new pace has begun since the last line of this watch.
        if self.since.replace(since) != Some(since) {
            self.lines = 0;
        }
        let due = since + every * self.lines;
        self.lines += 1;
        // The timer of the runtime knows only milliseconds: lines that are due within one go out together.
        if due > Instant::now() {
            time::sleep_until(due).await;
        }
        true
    }
}

/// Waits until nothing is held back; returns how it flows then.
pub(super) async fn released(flow: &mut Receiver<Flow>) -> Flow {
    match flow.wait_for(|flow| *flow != Flow::Held).await {
        Ok(flow) => *flow,
        // The sender is gone when the server ends, and then nothing matters.
        Err(_) => Flow::Free,
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn late_line_delays_none_behind_it() {
        let every = Duration::from_millis(5);
        let since = Instant::now();
        let flow = watch::Sender::new(Flow::Paced { since, every });
        let mut gate = Gate::new(flow.subscribe());
        for line in 0..3 {
            assert!(gate.pass().await);
            assert_eq!(since.elapsed(), every * line);
        }
        time::sleep(every * 2).await;
        assert!(gate.pass().await && gate.pass().await);
        assert_eq!(since.elapsed(), every * 4);
        flow.send_replace(Flow::Free);
        assert!(!gate.pass().await);
    }

    #[tokio::test(start_paused = true)]
    async fn held_line_passes_once_it_is_let_go() {
        let flow = watch::Sender::new(Flow::Held);
        let mut gate = Gate::new(flow.subscribe());
        let held = time::timeout(Duration::from_secs(9), gate.pass());
        assert!(held.await.is_err());
        flow.send_replace(Flow::Free);
        assert!(!gate.pass().await);
    }
}
