//! Objects whose end is being told.

use std::collections::HashMap;

use lariat_core::Uid;
use parking_lot::Mutex;

/// How many ends that were never told to the end are remembered: those of calls that were given up.
const MOST: usize = 1024;

/// How far telling the end of an object has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// A call began to tell it, and nothing came of that yet.
    Begun,
    /// It was told, by a call that has to come again for another reason.
    Told,
}

/// The ends that a reconciler has begun to tell, and not forgotten.
#[derive(Debug, Default)]
pub(super) struct Ends(Mutex<HashMap<Uid, End>>);

impl Ends {
    pub(super) fn is_told(&self, uid: &Uid) -> bool {
        self.0.lock().get(uid) == Some(&End::Told)
    }

    /// Returns whether an earlier call began to tell an end and failed, panicked or was dropped.
    pub(super) fn is_begun(&self, uid: &Uid) -> bool {
        self.0.lock().get(uid) == Some(&End::Begun)
    }

    pub(super) fn begin(&self, uid: &Uid) {
        let mut ends = self.0.lock();
        if ends.len() >= MOST {
            ends.retain(|_, end| *end == End::Told);
        }
        ends.insert(uid.clone(), End::Begun);
    }

    pub(super) fn told(&self, uid: &Uid) {
        self.0.lock().insert(uid.clone(), End::Told);
    }

    pub(super) fn forget(&self, uid: &Uid) {
        self.0.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_begun_and_told_and_forgotten() {
        let (ends, uid) = (Ends::default(), Uid::new("a"));
        assert!(!ends.is_begun(&uid) && !ends.is_told(&uid));
        ends.begin(&uid);
        assert!(ends.is_begun(&uid) && !ends.is_told(&uid));
        ends.told(&uid);
        for number in 0..2 * MOST {
            ends.begin(&Uid::new(&number.to_string()));
        }
        assert!(ends.is_told(&uid));
        assert!(ends.0.lock().len() <= MOST + 1);
        ends.forget(&uid);
        assert!(!ends.is_told(&uid));
    }
}
