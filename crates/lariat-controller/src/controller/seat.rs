//! Who is at work on what, for those who wait for it.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The workers of a kind.
#[derive(Default)]
pub(crate) struct Seats(Mutex<Vec<Arc<Mutex<Option<Doing>>>>>);

/// What a worker does, or did when it was stopped.
#[derive(Debug, Clone)]
pub(crate) struct Doing {
    pub(crate) key: ObjectKey,
    /// The handler that is being called, or is about to be.
    pub(crate) handler: Option<Arc<str>>,
    began: Instant,
}

impl Doing {
    /// Returns how long it has taken by now.
    pub(crate) fn lasts(&self) -> Duration {
        self.began.elapsed()
    }
}

/// A worker's place.
pub(super) struct Seat<'a> {
    seats: &'a Seats,
    doing: Arc<Mutex<Option<Doing>>>,
}

impl Seats {
    /// Gives a worker its place.
    pub(super) fn sit(&self) -> Seat<'_> {
        let doing = Arc::default();
        self.0.lock().push(Arc::clone(&doing));
        Seat { seats: self, doing }
    }

    /// Returns what is under way, or was when workers were stopped.
    pub(crate) fn doing(&self) -> Vec<Doing> {
        let seats = self.0.lock();
        seats
            .iter()
            .filter_map(|seat| seat.lock().clone())
            .collect()
    }

    /// Forgets what was under way when workers were stopped.
    pub(crate) fn clear(&self) {
        self.0.lock().retain(|seat| Arc::strong_count(seat) > 1);
    }
}

impl Seat<'_> {
    /// Notes that work on a key begins.
    pub(super) fn begin(&self, key: &ObjectKey) {
        *self.doing.lock() = Some(Doing {
            key: key.clone(),
            handler: None,
            began: Instant::now(),
        });
    }

    /// Notes that a handler is about to be called.
    pub(super) fn calls(&self, handler: &Arc<str>) {
        if let Some(doing) = &mut *self.doing.lock() {
            doing.handler = Some(Arc::clone(handler));
        }
    }

    /// Notes that work on the key has ended.
    pub(super) fn end(&self) {
        *self.doing.lock() = None;
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        // What was stopped in the middle is left to be seen.
        if self.doing.lock().is_none() || std::thread::panicking() {
            let mut seats = self.seats.0.lock();
            seats.retain(|seat| !Arc::ptr_eq(seat, &self.doing));
        }
    }
}
