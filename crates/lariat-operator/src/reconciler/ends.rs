//! Objects whose end a reconciler is notified of.

use std::collections::HashMap;

use lariat_core::Uid;
use parking_lot::Mutex;

/// How many ends are remembered whose notification never succeeded: those of calls that were given up.
const MOST: usize = 1024;

/// How far the notification of an object's end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// A call began it, and has not succeeded.
    Begun,
    /// It succeeded, in a call that has to come again for another reason.
    Notified,
}

/// The ends that a reconciler is notified of, until they are forgotten.
#[derive(Debug, Default)]
pub(super) struct Ends(Mutex<HashMap<Uid, End>>);

impl Ends {
    pub(super) fn is_notified(&self, uid: &Uid) -> bool {
        self.0.lock().get(uid) == Some(&End::Notified)
    }

    /// Returns whether an earlier call began a notification and failed, panicked or was dropped.
    pub(super) fn is_begun(&self, uid: &Uid) -> bool {
        self.0.lock().get(uid) == Some(&End::Begun)
    }

    pub(super) fn begin(&self, uid: &Uid) {
        let mut ends = self.0.lock();
        if ends.len() >= MOST {
            ends.retain(|_, end| *end == End::Notified);
        }
        ends.insert(uid.clone(), End::Begun);
    }

    pub(super) fn notified(&self, uid: &Uid) {
        self.0.lock().insert(uid.clone(), End::Notified);
    }

    pub(super) fn forget(&self, uid: &Uid) {
        self.0.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_begun_and_notified_and_forgotten() {
        let (ends, uid) = (Ends::default(), Uid::new("a"));
        assert!(!ends.is_begun(&uid) && !ends.is_notified(&uid));
        ends.begin(&uid);
        assert!(ends.is_begun(&uid) && !ends.is_notified(&uid));
        ends.notified(&uid);
        for number in 0..2 * MOST {
            ends.begin(&Uid::new(&number.to_string()));
        }
        assert!(ends.is_notified(&uid));
        assert!(ends.0.lock().len() <= MOST + 1);
        ends.forget(&uid);
        assert!(!ends.is_notified(&uid));
    }
}
