//! Timeouts of clients that do not read or write.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{self, Instant, Sleep};

/// The number of pauses in a timeout.
const PAUSES: u32 = 8;

/// The shortest pause.
const SHORTEST: Duration = Duration::from_millis(1);

/// A timeout that a jump of the clock does not end.
///
/// It consists of several pauses, one after another, and the runtime polls other tasks between them. So a clock that
/// jumps by an hour ends one pause, and a client that makes progress renews the timeout before the next ends.
#[derive(Debug)]
pub(crate) struct IdleTimeout {
    /// `None` for no timeout.
    pause: Option<Duration>,
    /// The number of pauses that are over.
    over: u32,
    /// The end of the present pause, if it has begun.
    timer: Option<Pin<Box<Sleep>>>,
    has_begun: bool,
}

/// The part of the timeout that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    Pause,
    /// The whole time.
    All,
}

impl IdleTimeout {
    /// Makes a timeout that begins when it is polled first; zero means none.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            pause: (!timeout.is_zero()).then(|| (timeout / PAUSES).max(SHORTEST)),
            over: 0,
            timer: None,
            has_begun: false,
        }
    }

    /// Waits until the time is over.
    pub(crate) async fn wait(mut self) {
        poll_fn(|cx| {
            while ready!(self.poll(cx)) != Passed::All {}
            Poll::Ready(())
        })
        .await;
    }

    /// Starts again at the next poll, because the client made progress.
    pub(crate) fn renew(&mut self) {
        self.has_begun = false;
    }

    /// Waits for the end of a pause.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Passed> {
        let Some(pause) = self.pause else {
            return Poll::Pending;
        };
        if !self.has_begun {
            self.has_begun = true;
            self.over = 0;
            self.set(pause);
        }
        if let Some(timer) = &mut self.timer {
            ready!(timer.as_mut().poll(cx));
        }
        self.over += 1;
        if self.over < PAUSES {
            // The next pause begins when this one was noticed, not when it was due: after a jump of the clock all
            // pauses would be over.
            self.set(pause);
            return Poll::Ready(Passed::Pause);
        }
        self.renew();
        Poll::Ready(Passed::All)
    }

    fn set(&mut self, pause: Duration) {
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(Instant::now() + pause),
            None => self.timer = Some(Box::pin(time::sleep(pause))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::future::poll_immediate;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_jump_of_the_clock_is_one_pause() {
        let start = Instant::now();
        let mut waits = pin!(IdleTimeout::new(8 * SECOND).wait());
        assert!(poll_immediate(&mut waits).await.is_none());
        time::advance(3600 * SECOND).await;
        assert!(poll_immediate(&mut waits).await.is_none());
        waits.await;
        assert_eq!(start.elapsed().as_secs(), 3607);
    }

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_is_waited_for() {
        let mut idle_timeout = IdleTimeout::new(8 * SECOND);
        for _ in 0..5 {
            for _ in 0..7 {
                let passed = poll_fn(|cx| idle_timeout.poll(cx)).await;
                assert_eq!(passed, Passed::Pause);
            }
            idle_timeout.renew();
        }
        let start = Instant::now();
        idle_timeout.wait().await;
        assert_eq!(start.elapsed().as_secs(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn zero_is_for_ever() {
        let waits = IdleTimeout::new(Duration::ZERO).wait();
        assert!(time::timeout(1_000_000 * SECOND, waits).await.is_err());
    }
}
