//! Which pods a handler has seen.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::pods;

/// The pods one handler has seen, and how often it was called.
#[derive(Debug)]
pub(super) struct Seen {
    pods: Pods,
    runs: AtomicU64,
}

#[derive(Debug)]
enum Pods {
    /// A bit for each pod whose name has its number.
    Numbered(Vec<AtomicU64>),
    /// Hashes of the names of any pods.
    Named {
        seen: Mutex<HashSet<u64>>,
        state: RandomState,
    },
}

impl Seen {
    /// Has room for so many pods; `numbered` if their names have numbers below that.
    pub(super) fn new(count: usize, numbered: bool) -> Self {
        let pods = if numbered {
            let words = (0..count.div_ceil(64)).map(|_| AtomicU64::new(0));
            Pods::Numbered(words.collect())
        } else {
            Pods::Named {
                seen: Mutex::new(HashSet::with_capacity(count)),
                state: RandomState::new(),
            }
        };
        Self {
            pods,
            runs: AtomicU64::new(0),
        }
    }

    pub(super) fn forget(&self) {
        self.runs.store(0, Ordering::Relaxed);
        match &self.pods {
            Pods::Numbered(words) => words
                .iter()
                .for_each(|word| word.store(0, Ordering::Relaxed)),
            Pods::Named { seen, .. } => seen.lock().unwrap_or_else(PoisonError::into_inner).clear(),
        }
    }

    /// Notes so many calls.
    pub(super) fn called(&self, times: u64) {
        self.runs.fetch_add(times, Ordering::Relaxed);
    }

    pub(super) fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Notes a pod; returns whether it is seen for the first time.
    pub(super) fn note(&self, namespace: Option<&str>, name: &str) -> bool {
        match &self.pods {
            // A bit and no lock: this runs in every handler, and its cost counts for all subjects.
            Pods::Numbered(words) => {
                let index = pods::index(name);
                let bit = 1 << (index % 64);
                // A pod of another program has no number, or one that was not created here.
                let word = words.get(index / 64);
                word.is_some_and(|word| word.fetch_or(bit, Ordering::Relaxed) & bit == 0)
            }
            Pods::Named { seen, state } => {
                let hash = state.hash_one((namespace, name));
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.insert(hash)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_seen_once_until_they_are_forgotten() {
        for numbered in [true, false] {
            let seen = Seen::new(100, numbered);
            let name = pods::pod(77).name;
            assert!(seen.note(Some("a"), &name));
            assert!(!seen.note(Some("a"), &name));
            seen.forget();
            assert!(seen.note(Some("a"), &name));
        }
    }

    #[test]
    fn pods_of_any_name_are_distinguished_by_their_namespaces() {
        let seen = Seen::new(2, false);
        assert!(seen.note(Some("a"), "web-0") && seen.note(Some("b"), "web-0"));
        let numbered = Seen::new(2, true);
        assert!(!numbered.note(Some("a"), "web-of-another"));
    }
}
