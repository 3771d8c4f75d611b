//! Checks the changes that caches publish to subscribers.

use std::collections::BTreeMap;

use lariat_cache::{CachedObject, Change};
use lariat_core::ObjectKey;
use lariat_sim::internals::{Event, Moment, Rest, Subscriber, version_of};

use crate::check::wanted::wanted;
use crate::check::{Check, Findings};
use crate::oracle::Oracle;

/// A subscriber is given each change once.
///
/// Nothing comes twice as new, and nothing unknown is changed or deleted.
#[derive(Default)]
pub(in crate::check) struct Subscribers {
    known: BTreeMap<Subscriber, BTreeMap<ObjectKey, (String, u64)>>,
}

impl Check for Subscribers {
    fn name(&self) -> &'static str {
        "each change once"
    }

    fn saw(&mut self, _: &Oracle, _: &Moment, event: &Event) -> Findings {
        match event {
            Event::Published { subscriber, change } => {
                let known = self.known.entry(subscriber.clone()).or_default();
                take(known, change).into_iter().collect()
            }
            Event::Unsubscribed(subscriber) => {
                self.known.remove(subscriber);
                Vec::new()
            }
            Event::IncarnationEnded(incarnation) => {
                self.known.retain(|of, _| of.incarnation != *incarnation);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn at_rest(&mut self, oracle: &Oracle, rest: &Rest<'_>) -> Findings {
        let mut found = Vec::new();
        let of_life = self
            .known
            .iter()
            .filter(|(of, _)| of.incarnation == *rest.incarnation);
        for (subscriber, known) in of_life {
            let wanted = wanted(rest, &subscriber.kind);
            let kind = subscriber.kind.kind();
            for (key, object) in oracle.all(&subscriber.kind) {
                if !wanted.selects(key, object) {
                    continue;
                }
                let is = (object.uid().to_owned(), object.revision());
                if known.get(key) != Some(&is) {
                    found.push(format!(
                        "subscriber {} knows {kind} {key} as {:?}, the server has version {}",
                        subscriber.number,
                        known.get(key).map(|known| known.1),
                        is.1
                    ));
                }
            }
            for key in known.keys() {
                if !oracle
                    .now(&subscriber.kind, key)
                    .is_some_and(|now| wanted.selects(key, now))
                {
                    found.push(format!(
                        "subscriber {} still knows {kind} {key}, which is gone",
                        subscriber.number
                    ));
                }
            }
        }
        found
    }
}

fn take(known: &mut BTreeMap<ObjectKey, (String, u64)>, change: &Change) -> Option<String> {
    let id = |object: &CachedObject| (object.uid().to_string(), version_of(object));
    let key = change.key();
    match change {
        Change::Added { object, .. } => known
            .insert(key.clone(), id(object))
            .map(|(_, version)| format!("{key} is added, but was known at version {version}")),
        Change::Updated { old, new } => {
            let before = known.insert(key.clone(), id(new));
            // A version may be published twice: when more of a kind is cached than before, the same version gets its
            // content.
            if id(old) == id(new) && old.labels() == new.labels() && old.json() == new.json() {
                return Some(format!("{key} is updated, but nothing changed"));
            }
            match before {
                None => Some(format!("{key} is updated, but was unknown")),
                Some(before) if before != id(old) => Some(format!(
                    "{key} is updated from {}, but was at {}",
                    id(old).1,
                    before.1
                )),
                Some(_) => None,
            }
        }
        Change::Deleted { .. } => match known.remove(key) {
            None => Some(format!("{key} is deleted, but was unknown")),
            Some(_) => None,
        },
        _ => None,
    }
}
