//! States that programs are shown: real ones, in their order, and never older than their own writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use lariat_cache::{CachedObject, Change, Metadata, Phase};
use lariat_cluster::StoredObject;
use lariat_core::{Gvk, ObjectKey};
use serde_json::Value;

use super::wanted::{Selections, wanted};
use super::{Check, Findings, Rest};
use crate::event::{Event, Moment, Shown, Subscriber, version_of};
use crate::oracle::{Oracle, Past};

/// One way in which a process is shown states of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    Handler(Arc<str>),
    Reads,
    Subscriber(u64),
}

type Place = (Arc<str>, u32, Gvk, ObjectKey, Channel);

/// What an event shows of an object.
struct Sight<'a> {
    process: &'a Arc<str>,
    life: u32,
    kind: &'a Gvk,
    key: &'a ObjectKey,
    channel: Channel,
    object: Option<Shown>,
}

impl<'a> Sight<'a> {
    fn of(event: &'a Event) -> Option<Self> {
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

    fn place(&self) -> Place {
        (
            Arc::clone(self.process),
            self.life,
            self.kind.clone(),
            self.key.clone(),
            self.channel.clone(),
        )
    }

    fn says(&self) -> String {
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
        let is_true = same.any(|past| {
            let object = past.object.as_ref();
            object.is_some_and(|stored| is_same(&shown.object, stored))
        });
        if is_true {
            return Vec::new();
        }
        vec![format!(
            "{} with other content than the server had",
            sight.says()
        )]
    }
}

/// Returns whether a cached object is what the server stores, as far as the cache holds it.
pub(super) fn is_same(cached: &CachedObject, stored: &StoredObject) -> bool {
    if cached.labels() != stored.labels() || cached.uid().to_string() != stored.uid() {
        return false;
    }
    let Some(json) = cached.json() else {
        return true;
    };
    // What was written or given up as whole is kept under its own kind, and what was read so as metadata.
    let is_partial = !cached.has_content();
    let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    let (Some(mut cached), Some(mut stored)) = (parse(&json), parse(&stored.json())) else {
        return false;
    };
    if is_partial {
        let (cached, stored) = (cached["metadata"].take(), stored["metadata"].take());
        return without(cached) == without(stored);
    }
    for value in [&mut cached, &mut stored] {
        // A resource has one stored form and is served in others.
        value["apiVersion"].take();
        value["metadata"] = without(value["metadata"].take());
    }
    cached == stored
}

fn without(mut metadata: Value) -> Value {
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("managedFields");
    }
    metadata
}

/// States are shown in the order in which the server had them, and an object is shown as gone only if it was.
#[derive(Default)]
pub(super) struct Forward {
    /// The place in the oracle's list of states.
    last: BTreeMap<Place, usize>,
    selections: Selections,
}

impl Check for Forward {
    fn name(&self) -> &'static str {
        "states in their order"
    }

    fn saw(&mut self, oracle: &Oracle, _: &Moment, event: &Event) -> Findings {
        self.selections.saw(event);
        if let Event::Life {
            process,
            life,
            is_alive: false,
        } = event
        {
            self.last
                .retain(|place, _| place.0 != *process || place.1 != *life);
        }
        let Some(sight) = Sight::of(event) else {
            return Vec::new();
        };
        let states = oracle.states(sight.kind, sight.key);
        let place = sight.place();
        let from = self.last.get(&place).copied();
        let selected = self.selections.of(&place.0, place.1, sight.kind);
        let fits = |past: &Past| match &sight.object {
            Some(shown) => past.is(&shown.uid, shown.version),
            None => !past
                .object
                .as_ref()
                .is_some_and(|object| selected.always(sight.key, object)),
        };
        let start = from.unwrap_or(0);
        let at = states
            .iter()
            .skip(start)
            .position(fits)
            .map(|at| at + start);
        match at {
            Some(at) => {
                self.last.insert(place, at);
                Vec::new()
            }
            // Before the first state an object was not there.
            None if sight.object.is_none() && from.is_none() => Vec::new(),
            None if sight.object.is_some() && from.is_none() => Vec::new(),
            None => {
                let last = from.and_then(|from| states.get(from));
                let last = last.map_or(0, |past| past.version);
                vec![format!("{} after version {last}", sight.says())]
            }
        }
    }
}

/// A process never reads a state older than its own write that was answered.
#[derive(Default)]
pub(super) struct OwnWrites {
    written: BTreeMap<(Arc<str>, u32, Gvk, ObjectKey), (u64, usize)>,
    selections: Selections,
}

impl Check for OwnWrites {
    fn name(&self) -> &'static str {
        "own writes are read"
    }

    fn saw(&mut self, oracle: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.selections.saw(event);
        match event {
            Event::Wrote {
                process,
                life,
                kind,
                key,
                written,
            } => {
                let states = oracle.states(kind, key);
                let at = states.iter().rposition(|past| written.is(past));
                if let Some(at) = at {
                    let place = (Arc::clone(process), *life, kind.clone(), key.clone());
                    self.written.insert(place, (moment.number, at));
                }
                return Vec::new();
            }
            Event::Life {
                process,
                life,
                is_alive: false,
            } => self
                .written
                .retain(|place, _| place.0 != *process || place.1 != *life),
            _ => {}
        }
        let Some(sight) = Sight::of(event) else {
            return Vec::new();
        };
        // What a subscriber gets may be on its way while the answer comes.
        if matches!(sight.channel, Channel::Subscriber(_)) {
            return Vec::new();
        }
        let place = (
            Arc::clone(sight.process),
            sight.life,
            sight.kind.clone(),
            sight.key.clone(),
        );
        let Some((number, from)) = self.written.get(&place).copied() else {
            return Vec::new();
        };
        // A backup that was restored since may not have the write.
        if oracle.reset_at > number {
            return Vec::new();
        }
        let selected = self.selections.of(&place.0, place.1, sight.kind);
        let states = oracle.states(sight.kind, sight.key);
        let is_new = states.iter().skip(from).any(|past| match &sight.object {
            Some(shown) => past.is(&shown.uid, shown.version),
            None => !past
                .object
                .as_ref()
                .is_some_and(|object| selected.always(sight.key, object)),
        });
        if is_new {
            return Vec::new();
        }
        let version = states.get(from).map_or(0, |past| past.version);
        vec![format!(
            "{} after a write that was answered with version {version}",
            sight.says()
        )]
    }
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
