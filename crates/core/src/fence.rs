//! Fences: the right to write, which may end at any moment.

use std::error::Error;
use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

/// The right to write, which may end at any moment.
///
/// A client asks its fence right before each attempt of a write, after every wait, and aborts the attempt when the
/// fence closes. A lease is the usual one.
pub trait Fence: Send + Sync {
    /// Returns whether a write may be sent now.
    ///
    /// The fence compares a clock that goes on while the process is suspended, and does not rely on timers: after a
    /// suspension a timer may fire later than others that are due.
    fn is_open(&self) -> bool;

    /// Waits until the fence is closed.
    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Returns the error of a write that the fence stopped.
    ///
    /// `was_sent` is false if the request did not leave the process.
    fn error(&self, write: &dyn Display, was_sent: bool) -> Box<dyn Error + Send + Sync>;
}

/// Runs a future while a fence is open; `None` if it closes before.
///
/// The fence is asked before each poll of the future. So whatever the future waits for, it does not continue after the
/// fence has closed.
///
/// # Cancel safety
///
/// As for the given future.
pub async fn while_open<T>(fence: &dyn Fence, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut closed) = (pin!(future), fence.closed());
    poll_fn(|cx| {
        // The clock first: after a suspension the future may be polled before the timer of the fence has fired.
        if !fence.is_open() || closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Waker};

    use super::*;

    /// A fence whose timer never fires.
    struct Silent(AtomicBool);

    impl Fence for Silent {
        fn is_open(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }

        fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(pending())
        }

        fn error(&self, write: &dyn Display, _: bool) -> Box<dyn Error + Send + Sync> {
            write.to_string().into()
        }
    }

    #[test]
    fn fence_is_asked_before_each_poll() {
        let fence = Silent(AtomicBool::new(true));
        let mut context = Context::from_waker(Waker::noop());
        let mut waits = true;
        let twice = poll_fn(|_| {
            let waited = std::mem::replace(&mut waits, false);
            if waited {
                Poll::Pending
            } else {
                Poll::Ready("sent")
            }
        });
        let mut sending = pin!(while_open(&fence, twice));
        assert!(sending.as_mut().poll(&mut context).is_pending());
        fence.0.store(false, Ordering::Relaxed);
        assert_eq!(sending.as_mut().poll(&mut context), Poll::Ready(None));
        let mut sending = pin!(while_open(&fence, ready("sent")));
        assert_eq!(sending.as_mut().poll(&mut context), Poll::Ready(None));
    }
}
