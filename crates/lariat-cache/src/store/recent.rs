//! Clearing away what is left of decoded values, and counting them.
//!
//! A weak link keeps the block of memory its value was in, though not what the value owned. A kind that
//! was looked through once would go on holding a block for every object.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::object::CachedObject;

/// How many objects may have dead links, in each thread that decodes.
const LENGTH: usize = 64;

thread_local! {
    static RECENT: RefCell<VecDeque<Weak<CachedObject>>> = const { RefCell::new(VecDeque::new()) };
    static DECODES: Cell<u64> = const { Cell::new(0) };
}

/// Returns how many values this thread has decoded.
pub(super) fn decodes() -> u64 {
    DECODES.get()
}

/// Notes that a value was decoded from an object, and clears away after the one before long.
pub(super) fn decoded(object: &Arc<CachedObject>) {
    DECODES.set(DECODES.get().wrapping_add(1));
    let before_long = RECENT.with_borrow_mut(|recent| {
        recent.push_back(Arc::downgrade(object));
        (recent.len() > LENGTH)
            .then(|| recent.pop_front())
            .flatten()
    });
    if let Some(object) = before_long.and_then(|object| object.upgrade()) {
        object.forget_dead();
    }
}
