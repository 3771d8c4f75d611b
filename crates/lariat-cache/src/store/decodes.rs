//! Counting what is decoded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::recent;

/// Counts the values that were decoded from the objects of a store; a clone counts together with it.
///
/// An object does not know in which store it is, for that would cost a pointer in each. So it is those who
/// read objects that count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Decodes(Arc<AtomicU64>);

impl Decodes {
    /// Reads objects, and counts what had to be decoded for it.
    pub(crate) fn of<T>(&self, read: impl FnOnce() -> T) -> T {
        let before = recent::decodes();
        let result = read();
        let count = recent::decodes().wrapping_sub(before);
        if count > 0 {
            self.0.fetch_add(count, Ordering::Relaxed);
        }
        result
    }

    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
