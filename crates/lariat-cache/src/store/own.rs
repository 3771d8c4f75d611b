//! What this process wrote itself, until the watch has caught up with it.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use lariat_core::{ObjectKey, ObjectMetadata, ResourceVersion, Uid};
use tokio::time::Instant;

use super::object::CachedObject;

/// How long a write of ours is believed over a list that does not know it. A server that was restored from
/// a backup never will.
const BELIEVED: Duration = Duration::from_secs(60);

/// How many writes may be remembered before old ones are cleared away.
const CLEAR_AT: usize = 1024;

/// How long the answer to a write may be under way, and how many ends are remembered for that.
const SLOWEST_ANSWER: Duration = Duration::from_secs(60);
const MOST_ENDED: usize = 16 * 1024;

/// Fences against older states that arrive late.
///
/// A write is remembered until the watch tells it, or for a minute. Where versions cannot be compared
/// nothing is fenced: what the server tells is believed.
#[derive(Debug, Default)]
pub(super) struct OwnWrites {
    by_key: HashMap<ObjectKey, Own>,
    /// Objects whose end was told, oldest first: the answer to a write may be slower than that.
    ended: VecDeque<(Instant, Uid)>,
}

#[derive(Debug)]
struct Own {
    at: Instant,
    what: Written,
}

#[derive(Debug)]
enum Written {
    /// The object was created or changed; this is its version since.
    State(Uid, ResourceVersion),
    /// The object was deleted; this was the last version of it that was known.
    Gone(Uid, ResourceVersion),
}

impl OwnWrites {
    pub(super) fn wrote(&mut self, object: &CachedObject) {
        let what = Written::State(object.uid().clone(), object.version().clone());
        self.remember(object.key(), what);
    }

    pub(super) fn deleted(&mut self, object: &ObjectMetadata) {
        self.remember(
            object.key(),
            Written::Gone(object.uid().clone(), object.version().clone()),
        );
    }

    fn remember(&mut self, key: &ObjectKey, what: Written) {
        let at = Instant::now();
        if self.by_key.len() >= CLEAR_AT {
            self.by_key.retain(|_, own| at - own.at < BELIEVED);
        }
        self.by_key.insert(key.clone(), Own { at, what });
    }

    /// Returns whether a state that is told is older than what we wrote; forgets what is told by now.
    pub(super) fn outdates(&mut self, told: &ObjectMetadata) -> bool {
        if self.by_key.is_empty() {
            return false;
        }
        let Some(own) = self.by_key.get(told.key()) else {
            return false;
        };
        let outdated = match &own.what {
            _ if own.at.elapsed() >= BELIEVED => false,
            Written::Gone(uid, version) => told.uid() == uid || is_before(told, version),
            Written::State(_, version) => is_before(told, version),
        };
        if !outdated {
            self.by_key.remove(told.key());
        }
        outdated
    }

    /// Notes that the end of an object was told.
    pub(super) fn ended(&mut self, told: &ObjectMetadata) {
        if let Some(Own {
            what: Written::Gone(uid, _),
            ..
        }) = self.by_key.get(told.key())
            && uid == told.uid()
        {
            self.by_key.remove(told.key());
        }
        let is_over = |(at, _): &(Instant, Uid)| at.elapsed() >= SLOWEST_ANSWER;
        while self.ended.len() >= MOST_ENDED || self.ended.front().is_some_and(is_over) {
            self.ended.pop_front();
        }
        self.ended.push_back((Instant::now(), told.uid().clone()));
    }

    /// Returns whether the answer to a write is about an object that has ended since.
    pub(super) fn has_ended(&self, written: &ObjectMetadata) -> bool {
        self.ended.iter().rev().any(|(_, uid)| uid == written.uid())
    }

    /// Returns whether an object that a list does not mention was written after that list.
    pub(super) fn is_after(&self, object: &CachedObject, list: &ResourceVersion) -> bool {
        let Some(own) = self.by_key.get(object.key()) else {
            return false;
        };
        let Written::State(uid, version) = &own.what else {
            return false;
        };
        own.at.elapsed() < BELIEVED
            && uid == object.uid()
            && version.compare(list) == Some(Ordering::Greater)
    }
}

fn is_before(told: &ObjectMetadata, version: &ResourceVersion) -> bool {
    told.version().compare(version) == Some(Ordering::Less)
}
