//! Objects that were cleaned up and are not gone yet.

use std::collections::{HashSet, VecDeque};

use lariat_core::Uid;

/// How many are remembered. More that wait for finalizers of others at a time make the first of them be cleaned up
/// again, if their own finalizer cannot be removed.
const MOST: usize = 16 * 1024;

/// The uids of objects whose cleanup is done.
#[derive(Debug, Default)]
pub(super) struct Cleaned {
    uids: HashSet<Uid>,
    /// The same uids, oldest first, and some that were forgotten since.
    order: VecDeque<Uid>,
}

impl Cleaned {
    pub(super) fn contains(&self, uid: &Uid) -> bool {
        self.uids.contains(uid)
    }

    pub(super) fn insert(&mut self, uid: &Uid) {
        if !self.uids.insert(uid.clone()) {
            return;
        }
        self.order.push_back(uid.clone());
        while self.order.len() > MOST {
            let oldest = self.order.pop_front();
            oldest.map(|uid| self.uids.remove(&uid));
        }
    }

    pub(super) fn forget(&mut self, uid: &Uid) {
        self.uids.remove(uid);
        // Objects mostly go in the order in which they were cleaned up.
        while let Some(first) = self.order.front()
            && !self.uids.contains(first)
        {
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(number: usize) -> Uid {
        Uid::new(&number.to_string())
    }

    #[test]
    fn the_last_ones_are_remembered_until_they_are_gone() {
        let mut cleaned = Cleaned::default();
        for number in 0..MOST + 10 {
            cleaned.insert(&uid(number));
            cleaned.insert(&uid(number));
        }
        assert_eq!(cleaned.uids.len(), MOST);
        assert!(!cleaned.contains(&uid(9)));
        assert!(cleaned.contains(&uid(10)));
        for number in (10..MOST + 10).rev() {
            cleaned.forget(&uid(number));
        }
        assert!(cleaned.uids.is_empty() && cleaned.order.is_empty());
    }
}
