//! Handlers that cannot be called yet.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::waiting::{Waiting, WaitingLine};

/// Keeps the keys of a handler that cannot be called for them yet, without a worker.
///
/// All keys wait while the caches of related kinds are filled, some while the content of their objects is read.
#[derive(Default)]
pub(crate) struct Hold {
    /// Whether all keys wait; the state says so too.
    is_closed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What is waited for before the handler is called first.
    closed: Option<Closed>,
    waiting: WaitingLine,
}

/// Why all keys wait.
#[derive(Clone)]
pub(crate) struct Closed {
    /// The numbers of the relations whose kinds were not filled.
    pub(crate) relations: Vec<u64>,
    pub(crate) since: Instant,
    /// Whether it was said that this takes long.
    pub(crate) is_said: bool,
}

impl Hold {
    /// Lets all keys wait for relations from now on, or none if there is no relation. To be called before the handler
    /// can be.
    pub(crate) fn close(&self, relations: Vec<u64>) {
        let closed = (!relations.is_empty()).then(|| Closed {
            relations,
            since: Instant::now(),
            is_said: false,
        });
        let mut state = self.state.lock();
        self.is_closed.store(closed.is_some(), Ordering::Relaxed);
        state.closed = closed;
    }

    /// Returns why all keys wait, if they do.
    pub(crate) fn closed(&self) -> Option<Closed> {
        self.state.lock().closed.clone()
    }

    /// Notes that it was said that this takes long.
    pub(crate) fn said(&self) {
        if let Some(closed) = &mut self.state.lock().closed {
            closed.is_said = true;
        }
    }

    /// Keeps a key if all keys wait. Returns whether it was kept, and whether it is the first.
    pub(crate) fn keep_if_closed(&self, waiting: impl FnOnce() -> Waiting) -> Option<bool> {
        if !self.is_closed.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.state.lock();
        state.closed.as_ref()?;
        Some(state.keep(waiting()))
    }

    /// Keeps a key; returns whether it is the first.
    pub(crate) fn keep(&self, waiting: Waiting) -> bool {
        self.state.lock().keep(waiting)
    }

    /// Returns whether anything is waited for.
    pub(crate) fn is_waiting(&self) -> bool {
        let state = self.state.lock();
        state.closed.is_some() || state.waiting.len() > 0
    }

    /// Returns how many keys wait.
    pub(super) fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Lets no key wait any more, and returns those that did.
    pub(crate) fn open(&self) -> Vec<Waiting> {
        let mut state = self.state.lock();
        state.closed = None;
        self.is_closed.store(false, Ordering::Relaxed);
        state.waiting.take_all()
    }
}

impl State {
    fn keep(&mut self, waiting: Waiting) -> bool {
        let is_first = self.waiting.len() == 0;
        self.waiting.join(waiting);
        is_first
    }
}
