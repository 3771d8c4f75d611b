//! Older runs: no longer among the last runs of the kind, but among the last of their key.

use std::collections::HashMap;
use std::mem::size_of;

use lariat_core::ObjectKey;

use super::{CallRecord, RunRecord};

/// The number of older runs kept of one key.
const RUNS_OF_KEY: u8 = 4;

/// The number of older runs kept of all keys together.
pub(super) const RUNS: usize = 4096;

/// The approximate bound of their memory, in bytes.
const BYTES: usize = 1 << 20;

/// Older runs, each in two linked lists: the runs of its key, and all runs by age.
///
/// If there are too many runs, the oldest one is evicted; if a key has too many, the oldest of the key. Both take
/// constant time. Runs are added in order of age, so the oldest run of all is also the oldest of its key.
#[derive(Default)]
pub(super) struct Older {
    /// The slab of nodes, some of them free.
    nodes: Vec<Node>,
    /// The indexes of free nodes.
    free: Vec<u32>,
    keys: HashMap<ObjectKey, OfKey>,
    /// The oldest and the newest run; none while empty.
    ends: Option<(u32, u32)>,
    bytes: usize,
}

/// A place for a run in the slab.
struct Node {
    /// None in a free node.
    run: Option<RunRecord>,
    /// The neighbours in the list of all runs by age.
    older: Option<u32>,
    newer: Option<u32>,
    /// The next run of the same key.
    next: Option<u32>,
}

/// The runs of one key.
struct OfKey {
    oldest: u32,
    newest: u32,
    count: u8,
}

impl Older {
    /// Adds a run, which must be newer than all others.
    ///
    /// Returns an evicted run, so that the caller can drop it after unlocking. If several are evicted, which is rare,
    /// it returns one of them.
    pub(super) fn push(&mut self, run: RunRecord) -> Option<RunRecord> {
        let mut gone = None;
        self.bytes += size(&run);
        let key = run.key.clone();
        let at = self.place(run);
        self.append(at);
        match self.keys.get_mut(&key) {
            Some(of) => {
                let before = std::mem::replace(&mut of.newest, at);
                of.count += 1;
                let is_full = of.count > RUNS_OF_KEY;
                let oldest = of.oldest;
                self.nodes[before as usize].next = Some(at);
                gone = is_full.then(|| self.remove(oldest)).flatten();
            }
            None => {
                let of = OfKey {
                    oldest: at,
                    newest: at,
                    count: 1,
                };
                self.keys.insert(key, of);
            }
        }
        // The oldest run is evicted first, so the new one is evicted only if it alone exceeds the bound.
        while self.bytes > BYTES || self.nodes.len() - self.free.len() > RUNS {
            let Some((oldest, _)) = self.ends else { break };
            gone = self.remove(oldest);
        }
        gone
    }

    /// Returns how many runs are kept.
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Returns the runs of a key, oldest first.
    pub(super) fn of(&self, key: &ObjectKey) -> impl Iterator<Item = &RunRecord> {
        let first = self.keys.get(key).map(|of| of.oldest);
        let places = std::iter::successors(first, |at| self.nodes[*at as usize].next);
        places.filter_map(|at| self.nodes[at as usize].run.as_ref())
    }

    /// Puts a run into a free node; returns the node's index.
    fn place(&mut self, run: RunRecord) -> u32 {
        let node = Node {
            run: Some(run),
            older: None,
            newer: None,
            next: None,
        };
        if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = node;
            return at;
        }
        self.nodes.push(node);
        // The slab has at most `RUNS` and a few nodes, so the index fits.
        u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX)
    }

    /// Appends a run to the list of all runs.
    fn append(&mut self, at: u32) {
        let newest = self.ends.map(|(_, newest)| newest);
        self.nodes[at as usize].older = newest;
        if let Some(newest) = newest {
            self.nodes[newest as usize].newer = Some(at);
        }
        let oldest = self.ends.map_or(at, |(oldest, _)| oldest);
        self.ends = Some((oldest, at));
    }

    /// Removes a run, which must be the oldest of its key.
    fn remove(&mut self, at: u32) -> Option<RunRecord> {
        let node = &mut self.nodes[at as usize];
        let run = node.run.take()?;
        let (older, newer, next) = (node.older, node.newer, node.next);
        if let Some(older) = older {
            self.nodes[older as usize].newer = newer;
        }
        if let Some(newer) = newer {
            self.nodes[newer as usize].older = older;
        }
        // `?` ends with `None` if the only run is removed.
        self.ends = self.ends.and_then(|(oldest, newest)| {
            let oldest = if oldest == at { newer? } else { oldest };
            let newest = if newest == at { older? } else { newest };
            Some((oldest, newest))
        });
        match (next, self.keys.get_mut(&run.key)) {
            (Some(next), Some(of)) => {
                of.oldest = next;
                of.count -= 1;
            }
            _ => drop(self.keys.remove(&run.key)),
        }
        self.free.push(at);
        self.bytes -= size(&run);
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
    size_of::<Node>() + 2 * run.key.as_str().len() + size_of::<OfKey>() + causes + calls + texts
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
        assert_eq!(older.nodes.len(), 6, "places are used again");
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
        assert_eq!(older.nodes.len() - older.free.len(), kept);
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
            if naive.iter().filter(of).count() > usize::from(RUNS_OF_KEY) {
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
