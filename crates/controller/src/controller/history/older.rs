//! Older runs: no longer among the last runs of the kind, but among the last of their key.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::mem::size_of;

use lariat_core::ObjectKey;

use super::{CallRecord, RunRecord};

/// The number of older runs kept of one key.
const RUNS_OF_KEY: usize = 4;

/// The number of older runs kept of all keys together.
pub(super) const RUNS: usize = 4096;

/// The approximate bound of their memory, in bytes.
const BYTES: usize = 1 << 20;

/// Older runs, by age.
///
/// If there are too many runs, the oldest one is evicted; if a key has too many, the oldest of the key. Runs are added in
/// order of age, so the oldest run of all is also the oldest of its key.
#[derive(Default)]
pub(super) struct Older {
    /// The runs by the number with which they were added.
    runs: BTreeMap<u64, RunRecord>,
    /// The numbers of the runs of each key, the oldest first.
    keys: HashMap<ObjectKey, VecDeque<u64>>,
    next: u64,
    bytes: usize,
}

impl Older {
    /// Adds a run, which must be newer than all others.
    ///
    /// Returns an evicted run, so that the caller can drop it after unlocking. If several are evicted, which is rare,
    /// it returns one of them.
    pub(super) fn push(&mut self, run: RunRecord) -> Option<RunRecord> {
        let number = self.next;
        self.next += 1;
        self.bytes += size(&run);
        let of_key = self.keys.entry(run.key.clone()).or_default();
        of_key.push_back(number);
        let surplus = of_key.front().filter(|_| of_key.len() > RUNS_OF_KEY);
        let surplus = surplus.copied();
        self.runs.insert(number, run);
        let mut gone = surplus.and_then(|oldest| self.remove(oldest));
        // The oldest run is evicted first, so the new one is evicted only if it alone exceeds the bound.
        while self.bytes > BYTES || self.runs.len() > RUNS {
            let Some(oldest) = self.runs.keys().next().copied() else {
                break;
            };
            gone = self.remove(oldest);
        }
        gone
    }

    /// Returns the number of runs.
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns the runs of a key, oldest first.
    pub(super) fn of(&self, key: &ObjectKey) -> impl Iterator<Item = &RunRecord> {
        let numbers = self.keys.get(key).into_iter().flatten();
        numbers.filter_map(|number| self.runs.get(number))
    }

    /// Removes a run, which is the oldest of its key.
    fn remove(&mut self, number: u64) -> Option<RunRecord> {
        let run = self.runs.remove(&number)?;
        self.bytes -= size(&run);
        if let Some(of_key) = self.keys.get_mut(&run.key) {
            of_key.pop_front();
            if of_key.is_empty() {
                self.keys.remove(&run.key);
            }
        }
        Some(run)
    }
}

/// Returns the approximate memory a run takes.
fn size(run: &RunRecord) -> usize {
    let texts: usize = run
        .calls
        .iter()
        .filter_map(|call| call.error.as_ref())
        .map(|text| text.len())
        .sum();
    // The key is stored twice; a cause is estimated at 64 bytes.
    let causes = 64 * run.causes.iter().count();
    let calls = run.calls.capacity() * size_of::<CallRecord>();
    let entries =
        size_of::<RunRecord>() + size_of::<VecDeque<u64>>() + RUNS_OF_KEY * size_of::<u64>();
    entries + 2 * run.key.as_str().len() + causes + calls + texts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use lariat_core::{Cause, Causes};
    use tokio::time::Instant;

    use super::*;

    fn run(number: u64, name: &str) -> RunRecord {
        RunRecord {
            run: number,
            key: ObjectKey::cluster(name),
            causes: Arc::new(Causes::from(Cause::Resync)),
            began: Instant::now(),
            waited: Duration::ZERO,
            took: Duration::ZERO,
            calls: Vec::new(),
        }
    }

    fn numbers(older: &Older, name: &str) -> Vec<u64> {
        let key = ObjectKey::cluster(name);
        older.of(&key).map(|run| run.run).collect()
    }

    #[test]
    fn of_each_key_the_last_few_are_kept_however_often_others_run() {
        let mut older = Older::default();
        older.push(run(1, "quiet"));
        for number in 2..10_000 {
            let gone = older.push(run(number, "busy"));
            assert_eq!(gone.is_some(), number > 5);
        }
        assert_eq!(numbers(&older, "quiet"), [1]);
        assert_eq!(numbers(&older, "busy"), [9996, 9997, 9998, 9999]);
        assert_eq!((older.len(), older.keys.len()), (5, 2));
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_keys() {
        let mut older = Older::default();
        for number in 0..20_000 {
            older.push(run(number, &number.to_string()));
        }
        let kept = older.keys.len();
        assert!(kept > 1000 && kept <= RUNS, "{kept}");
        assert!(older.bytes <= BYTES);
        assert_eq!(older.len(), kept);
        assert!(numbers(&older, "0").is_empty());
        assert_eq!(numbers(&older, "19999"), [19_999]);
        let first = 20_000 - kept as u64;
        assert_eq!(numbers(&older, &first.to_string()), [first]);
        assert!(numbers(&older, &(first - 1).to_string()).is_empty());
    }

    #[test]
    fn what_is_kept_is_what_a_naive_list_keeps() {
        let mut older = Older::default();
        let mut naive: Vec<(u64, String)> = Vec::new();
        for number in 0..3000u64 {
            let name = (number * number % 37 % 11).to_string();
            older.push(run(number, &name));
            naive.push((number, name.clone()));
            let of = |(_, other): &&(u64, String)| *other == name;
            if naive.iter().filter(of).count() > RUNS_OF_KEY {
                let at = naive.iter().position(|(_, other)| *other == name);
                naive.remove(at.expect("there are some"));
            }
        }
        for name in (0..11).map(|name: u32| name.to_string()) {
            let expected: Vec<u64> = naive
                .iter()
                .filter(|(_, other)| *other == name)
                .map(|(number, _)| *number)
                .collect();
            assert_eq!(numbers(&older, &name), expected);
        }
        assert_eq!(
            older.keys.len(),
            naive
                .iter()
                .map(|(_, name)| name)
                .collect::<std::collections::HashSet<_>>()
                .len()
        );
    }
}
