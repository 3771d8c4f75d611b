//! Waiting for a client, but not for ever.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{self, Instant, Sleep};

/// How many pauses a timeout has.
const PAUSES: u32 = 8;

/// The shortest pause.
const SHORTEST: Duration = Duration::from_millis(1);

/// A timeout that no jump of the clock ends.
///
/// It is over after some pauses, one after the other, and between two of them the runtime does whatever there is to
/// do. So a clock that is moved on by an hour ends one pause, and whoever can go on does so before the next.
#[derive(Debug)]
pub(crate) struct Patience {
    /// `None` if it lasts for ever.
    pause: Option<Duration>,
    /// How many pauses are over.
    over: u32,
    /// The end of the present pause, if it has begun.
    timer: Option<Pin<Box<Sleep>>>,
    has_begun: bool,
}

/// What has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    Pause,
    /// The whole time.
    All,
}

impl Patience {
    /// Makes a timeout that begins when it is polled first; zero lasts for ever.
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

    /// Begins afresh at the next poll, because something has gone on.
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
        let mut waits = pin!(Patience::new(8 * SECOND).wait());
        assert!(poll_immediate(&mut waits).await.is_none());
        time::advance(3600 * SECOND).await;
        assert!(poll_immediate(&mut waits).await.is_none());
        waits.await;
        assert_eq!(start.elapsed().as_secs(), 3607);
    }

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_is_waited_for() {
        let mut patience = Patience::new(8 * SECOND);
        for _ in 0..5 {
            for _ in 0..7 {
                let passed = poll_fn(|cx| patience.poll(cx)).await;
                assert_eq!(passed, Passed::Pause);
            }
            patience.renew();
        }
        let start = Instant::now();
        patience.wait().await;
        assert_eq!(start.elapsed().as_secs(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn zero_is_for_ever() {
        let waits = Patience::new(Duration::ZERO).wait();
        assert!(time::timeout(1_000_000 * SECOND, waits).await.is_err());
    }
}
