//! A door that can be shut behind the last call.

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Lets calls in until it is closed, and knows how many are inside.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    left: Notify,
}

#[derive(Default)]
struct State {
    closed: bool,
    inside: usize,
}

/// A call that is under way.
pub(crate) struct Inside<'a>(&'a Gate);

impl Gate {
    /// Begins a call; `None` once the gate is closed.
    pub(super) fn enter(&self) -> Option<Inside<'_>> {
        let mut state = self.state.lock();
        if state.closed {
            return None;
        }
        state.inside += 1;
        Some(Inside(self))
    }

    /// Lets no further call begin.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
    }

    /// Waits until no call is under way; to be closed before.
    pub(super) async fn empty(&self) {
        loop {
            let left = self.left.notified();
            if self.state.lock().inside == 0 {
                return;
            }
            left.await;
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.inside -= 1;
        if state.inside == 0 {
            self.0.left.notify_waiters();
        }
    }
}
