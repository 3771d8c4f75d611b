//! States that programs are shown: real ones, and in their order.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use lariat_cache::{CachedObject, Change, Metadata, Phase};
use lariat_cluster::StoredObject;
use lariat_core::{Gvk, ObjectKey};
use serde_json::{Value, json};

use super::wanted::{Selections, wanted};
use super::{Check, Findings, Rest};
use crate::event::{Event, Moment, Shown, Subscriber, version_of};
use crate::oracle::{Oracle, Past};

/// One way in which a process is shown states of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Channel {
    Handler(Arc<str>),
    Reads,
    Subscriber(u64),
}

/// One way in which a life of a process is shown states of a kind.
type Way = (Arc<str>, u32, Gvk, Channel);

/// What an event shows of an object.
pub(super) struct Sight<'a> {
    pub(super) process: &'a Arc<str>,
    pub(super) life: u32,
    pub(super) kind: &'a Gvk,
    pub(super) key: &'a ObjectKey,
    pub(super) channel: Channel,
    pub(super) object: Option<Shown>,
}

impl<'a> Sight<'a> {
    pub(super) fn of(event: &'a Event) -> Option<Self> {
        Some(match event {
            Event::Began {
                handler,
                key,
                object,
                ..
            } => Self {
                process: &handler.process,
                life: handler.life,
                kind: &handler.kind,
                key,
                channel: Channel::Handler(Arc::clone(&handler.name)),
                object: object.clone(),
            },
            Event::Read {
                process,
                life,
                kind,
                key,
                object,
            } => Self {
                process,
                life: *life,
                kind,
                key,
                channel: Channel::Reads,
                object: object.clone(),
            },
            Event::Published { subscriber, change } => {
                let object = match change {
                    Change::Added { object, .. } | Change::Resynced { object } => Some(object),
                    Change::Updated { new, .. } => Some(new),
                    _ => None,
                };
                Self {
                    process: &subscriber.process,
                    life: subscriber.life,
                    kind: &subscriber.kind,
                    key: change.key(),
                    channel: Channel::Subscriber(subscriber.number),
                    object: object.map(Shown::new),
                }
            }
            _ => return None,
        })
    }

    fn way(&self) -> Way {
        (
            Arc::clone(self.process),
            self.life,
            self.kind.clone(),
            self.channel.clone(),
        )
    }

    pub(super) fn says(&self) -> String {
        let channel = match &self.channel {
            Channel::Handler(name) => format!("handler {name} was called for"),
            Channel::Reads => "a read found".to_owned(),
            Channel::Subscriber(number) => format!("subscriber {number} was given"),
        };
        let state = match &self.object {
            Some(shown) => format!("version {} of", shown.version),
            None => "no".to_owned(),
        };
        format!("{channel} {state} {} {}", self.kind.kind(), self.key)
    }
}

/// Every state shown was one the server had, with the content it had.
#[derive(Default)]
pub(super) struct TrueStates;

impl Check for TrueStates {
    fn name(&self) -> &'static str {
        "only true states"
    }

    fn saw(&mut self, oracle: &Oracle, _: &Moment, event: &Event) -> Findings {
        let Some(sight) = Sight::of(event) else {
            return Vec::new();
        };
        let Some(shown) = &sight.object else {
            return Vec::new();
        };
        let states = oracle.states(sight.kind, sight.key);
        let mut same = states
            .iter()
            .filter(|past| past.is(&shown.uid, shown.version))
            .peekable();
        if same.peek().is_none() {
            return vec![format!("{}, which the server never had", sight.says())];
        }
        let mut at = None;
        for past in same {
            match differs_from(&shown.object, past) {
                None => return Vec::new(),
                Some(path) => at = Some(path),
            }
        }
        let path = at.unwrap_or_default();
        vec![format!(
            "{} with other content than the server had, at {path}",
            sight.says()
        )]
    }
}

/// Returns where a cached object differs from a state; contents that were found to be the same are not parsed again.
fn differs_from(object: &CachedObject, past: &Past) -> Option<String> {
    let stored = past.object.as_ref()?;
    let Some(json) = object.json() else {
        return difference(object, stored);
    };
    let mut hasher = DefaultHasher::new();
    json.hash(&mut hasher);
    let (is_whole, hash) = (object.has_content(), hasher.finish());
    if past.known.has(is_whole, hash) && object.labels() == stored.labels() {
        return None;
    }
    let difference = difference(object, stored);
    if difference.is_none() {
        past.known.keep(is_whole, hash);
    }
    difference
}

/// Returns whether a cached object is what the server stores, as far as the cache holds it.
pub(super) fn is_same(cached: &CachedObject, stored: &StoredObject) -> bool {
    difference(cached, stored).is_none()
}

/// Returns where a cached object differs from what the server stores, as far as the cache holds it.
fn difference(object: &CachedObject, stored: &StoredObject) -> Option<String> {
    if object.labels() != stored.labels() {
        return Some("labels".to_owned());
    }
    let json = object.json()?;
    let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    let (mut cached, mut stored) = (parse(&json), parse(&stored.json()));
    if !object.has_content() {
        (cached, stored) = (
            json!({"metadata": cached["metadata"].take()}),
            json!({"metadata": stored["metadata"].take()}),
        );
    }
    for value in [&mut cached, &mut stored] {
        // A resource has one stored form and is served in others.
        value["apiVersion"].take();
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
    }
    differs(&cached, &stored)
}

/// Returns the path to the first difference, without the values: they may be a Secret's.
fn differs(one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            keys.into_iter().find_map(|key| {
                let null = &Value::Null;
                let (one, other) = (one.get(key), other.get(key));
                if one.is_some() != other.is_some() {
                    return Some(format!(".{key} (in one only)"));
                }
                let path = differs(one.unwrap_or(null), other.unwrap_or(null))?;
                Some(format!(".{key}{path}"))
            })
        }
        _ => (one != other).then(String::new),
    }
}

/// States are shown in the order in which the server had them, and an object is shown as gone only if it was.
///
/// What is shown counts as the earliest state it can be. Before its first state an object was not there, and a process
/// whose watch is behind may not know it yet: a handler that is called for a related object then is shown nothing. But
/// what a cache has is not shown as gone at first sight: it has what was there at the version up to which it said that
/// it is complete. That is not judged where a part of a kind was selected, or a backup restored.
#[derive(Default)]
pub(super) struct Forward {
    /// The number each state that was shown last has in the oracle's list.
    last: BTreeMap<Way, BTreeMap<ObjectKey, u64>>,
    /// The versions up to which caches are complete.
    complete: BTreeMap<(Arc<str>, u32), BTreeMap<Gvk, u64>>,
    selections: Selections,
}

impl Check for Forward {
    fn name(&self) -> &'static str {
        "states in their order"
    }

    fn saw(&mut self, oracle: &Oracle, _: &Moment, event: &Event) -> Findings {
        self.selections.saw(event);
        self.note(event);
        if let Some(way) = closed(event) {
            self.last.remove(&way);
        }
        let Some(sight) = Sight::of(event) else {
            return Vec::new();
        };
        let states = oracle.states(sight.kind, sight.key);
        let last = self.last.entry(sight.way()).or_default();
        let from = last.get(sight.key).copied();
        let selected = self.selections.of(sight.process, sight.life, sight.kind);
        let start = match (from, &sight.object) {
            (Some(from), _) => since(states, from),
            (None, Some(_)) => 0,
            (None, None) => {
                let caches = self.complete.get(&(Arc::clone(sight.process), sight.life));
                let version = caches.and_then(|caches| caches.get(sight.kind));
                let is_judged = oracle.epoch() <= 1 && selected.is_all();
                let Some(version) = version.filter(|_| is_judged) else {
                    return Vec::new();
                };
                as_at(states, *version)
            }
        };
        let fits = |past: &Past| match &sight.object {
            Some(shown) => past.is(&shown.uid, shown.version),
            None => !past
                .object
                .as_ref()
                .is_some_and(|object| selected.always(sight.key, object)),
        };
        let now = states[start..].iter().find(|past| fits(past));
        match now {
            Some(past) => {
                last.insert(sight.key.clone(), past.number);
                Vec::new()
            }
            // That the server never had it is said by another checker; what has been gone for long is forgotten.
            None if from.is_none() && sight.object.is_some() => Vec::new(),
            None if states.is_empty() && sight.object.is_none() => Vec::new(),
            None => {
                let last = states[start..].first().map_or(0, |past| past.version);
                vec![format!("{} after version {last}", sight.says())]
            }
        }
    }
}

impl Forward {
    /// Notes how far caches are, and forgets lives that are over.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Life {
                process,
                life,
                is_alive: false,
            } => {
                self.last
                    .retain(|way, _| way.0 != *process || way.1 != *life);
                self.complete.remove(&(Arc::clone(process), *life));
            }
            Event::Cached {
                process,
                life,
                kinds,
            } => {
                let versions = kinds.iter();
                let versions = versions.filter_map(|it| Some((it.kind.clone(), it.complete?)));
                let of = (Arc::clone(process), *life);
                self.complete.insert(of, versions.collect());
            }
            _ => {}
        }
    }
}

/// Returns the way that ends with an event; handlers and subscribers that come back are others.
fn closed(event: &Event) -> Option<Way> {
    match event {
        Event::Acted(activity) => {
            let handler = activity.deregistered()?;
            let channel = Channel::Handler(handler.name);
            Some((handler.process, handler.life, handler.kind, channel))
        }
        Event::Unsubscribed(of) => {
            let channel = Channel::Subscriber(of.number);
            Some((Arc::clone(&of.process), of.life, of.kind.clone(), channel))
        }
        _ => None,
    }
}

/// Returns the place of the first state that is not older than one with a number.
pub(super) fn since(states: &[Past], number: u64) -> usize {
    states.partition_point(|past| past.number < number)
}

/// Returns the place of the state at a version.
fn as_at(states: &[Past], version: u64) -> usize {
    let until = states.partition_point(|past| past.version <= version);
    until.saturating_sub(1)
}

/// A subscriber is given each change once: nothing twice as new, nothing unknown as changed or deleted.
#[derive(Default)]
pub(super) struct Subscribers {
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
            Event::Life {
                process,
                life,
                is_alive: false,
            } => {
                self.known
                    .retain(|of, _| of.process != *process || of.life != *life);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn at_rest(&mut self, oracle: &Oracle, rest: &Rest<'_>) -> Findings {
        let mut found = Vec::new();
        for (subscriber, known) in &self.known {
            if subscriber.process != *rest.process || subscriber.life != rest.life {
                continue;
            }
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

/// At rest a cache holds what the server has: every object, with its content.
#[derive(Default)]
pub(super) struct Caches;

impl Check for Caches {
    fn name(&self) -> &'static str {
        "the cache equals the server"
    }

    fn at_rest(&mut self, oracle: &Oracle, rest: &Rest<'_>) -> Findings {
        let mut found = Vec::new();
        for status in rest.caches {
            let kind = &status.gvk;
            if status.phase != Phase::Synced && oracle.all(kind).next().is_some() {
                found.push(format!(
                    "{} is {}, but the server serves it",
                    kind.kind(),
                    status.phase
                ));
                continue;
            }
            let informers = rest
                .factories
                .iter()
                .filter_map(|each| each.caches().existing(kind));
            for informer in informers {
                let wanted = wanted(rest, kind);
                let cached = informer.cache::<Metadata>().snapshot();
                for (key, object) in oracle.all(kind).filter(|(key, it)| wanted.selects(key, it)) {
                    match cached.get(key) {
                        None => found.push(format!(
                            "{} {key} is missing, the server has version {}",
                            kind.kind(),
                            object.revision()
                        )),
                        Some(is) if version_of(is) != object.revision() => found.push(format!(
                            "{} {key} is at version {}, the server has {}",
                            kind.kind(),
                            version_of(is),
                            object.revision()
                        )),
                        Some(is) if !is_same(is, object) => found.push(format!(
                            "{} {key} has other content than the server at version {}",
                            kind.kind(),
                            object.revision()
                        )),
                        Some(_) => {}
                    }
                }
                for is in cached.iter() {
                    if !oracle
                        .now(kind, is.key())
                        .is_some_and(|now| wanted.selects(is.key(), now))
                    {
                        found.push(format!("{} {} is cached, but gone", kind.kind(), is.key()));
                    }
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::Causes;

    use super::*;
    use crate::activity::Reached;
    use crate::check::testing::{Server, Story, kind, shown};

    /// Returns how much is found if a handler is shown an object that was created and deleted, or none, one after the
    /// other.
    async fn found(shows: &[bool]) -> usize {
        let server = Server::start().await;
        let mut story = Story::of(Forward::default());
        let object = server.create("a").await;
        server.delete("a").await;
        story.commits(1, server.take());
        for is_shown in shows {
            let object = is_shown.then(|| shown(&object));
            story.begins_with(2, "h", "a", object);
        }
        story.found()
    }

    #[tokio::test]
    async fn an_object_that_comes_back_is_found() {
        assert_eq!(found(&[true, false]).await, 0);
        assert_eq!(found(&[true, false, true]).await, 1);
    }

    /// Returns how much is found if a handler is shown no object although there is one, and the cache says that it has
    /// everything up to some version.
    async fn found_missing(complete: impl Fn(u64) -> Option<u64>) -> usize {
        let server = Server::start().await;
        let mut story = Story::of(Forward::default());
        let object = server.create("a").await;
        story.commits(1, server.take());
        let reached = Reached {
            kind: kind(),
            loads: 1,
            complete: complete(object.revision()),
        };
        let (process, life) = (Arc::from("p"), 0);
        let kinds = vec![reached];
        let cached = Event::Cached {
            process,
            life,
            kinds,
        };
        story.event(2, &cached);
        story.begins(3, "h", "a", Causes::default());
        story.found()
    }

    #[tokio::test]
    async fn an_object_that_a_complete_cache_has_is_not_gone_at_first_sight() {
        assert_eq!(found_missing(Some).await, 1);
        assert_eq!(found_missing(|version| Some(version - 1)).await, 0);
        assert_eq!(found_missing(|_| None).await, 0);
    }

    #[tokio::test]
    async fn an_object_that_is_not_known_yet_does_not_come_back() {
        // A related object brings the key before the watch has shown the object.
        assert_eq!(found(&[false, true, false]).await, 0);
        assert_eq!(found(&[false, true, false, true]).await, 1);
    }
}
