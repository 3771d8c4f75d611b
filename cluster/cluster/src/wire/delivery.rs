//! The progress of sending a response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The progress of a response, as its body shows whoever sends it.
///
/// A sender asks a body for the next piece once it has room for it. So a piece that was handed out waits for the
/// client until the next one is asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delivery(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// The number of pieces that were handed out.
    pieces: AtomicU64,
    /// There is something for the client to take.
    waits: AtomicBool,
    /// The client was cut off because it took nothing.
    cut_off: AtomicBool,
}

impl Delivery {
    /// Notes that something is there to be sent.
    pub(crate) fn offer(&self) {
        self.0.pieces.fetch_add(1, Ordering::Relaxed);
        self.0.waits.store(true, Ordering::Relaxed);
    }

    /// Notes that the client has everything there is.
    pub(super) fn rest(&self) {
        self.0.waits.store(false, Ordering::Relaxed);
    }

    /// Returns how often something was offered, if the client has not taken it.
    pub(crate) fn waiting(&self) -> Option<u64> {
        let waits = self.0.waits.load(Ordering::Relaxed);
        waits.then(|| self.0.pieces.load(Ordering::Relaxed))
    }

    pub(crate) fn cut_off(&self) {
        self.0.cut_off.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        self.0.cut_off.load(Ordering::Relaxed)
    }
}
