//! Contents of states: those the server had.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use lariat_cache::CachedObject;
use lariat_cluster::StoredObject;
use lariat_sim::internals::{Event, Moment};
use serde_json::{Value, json};

use super::observation::Observation;
use crate::check::{Check, Findings};
use crate::oracle::{Oracle, Past};

/// Every state shown was one the server had, with the content it had.
#[derive(Default)]
pub(in crate::check) struct TrueStates;

impl Check for TrueStates {
    fn name(&self) -> &'static str {
        "only true states"
    }

    fn saw(&mut self, oracle: &Oracle, _: &Moment, event: &Event) -> Findings {
        let Some(observation) = Observation::of(event) else {
            return Vec::new();
        };
        let Some(shown) = &observation.object else {
            return Vec::new();
        };
        let states = oracle.states(observation.kind, observation.key);
        // There may be several: after a restored backup the server gives a version a second time, with other content.
        let mut same = states
            .iter()
            .filter(|past| past.is(&shown.uid, shown.version))
            .peekable();
        if same.peek().is_none() {
            return vec![format!(
                "{}, which the server never had",
                observation.says()
            )];
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
            observation.says()
        )]
    }
}

/// Returns the difference of a cached object from a state of the server.
///
/// Contents that were found to be the same are not parsed again.
fn differs_from(object: &CachedObject, past: &Past) -> Option<String> {
    let stored = past.object.as_ref()?;
    let Some(json) = object.json() else {
        return difference(object, stored);
    };
    let mut hasher = DefaultHasher::new();
    json.hash(&mut hasher);
    let (is_whole, hash) = (object.has_content(), hasher.finish());
    // The hash does not cover the labels, which a cached object keeps on their own.
    if past.known.has(is_whole, hash) && object.labels() == stored.labels() {
        return None;
    }
    let difference = difference(object, stored);
    if difference.is_none() {
        past.known.keep(is_whole, hash);
    }
    difference
}

/// Returns whether a cached object is the stored one, as far as it is cached.
pub(super) fn is_same(cached: &CachedObject, stored: &StoredObject) -> bool {
    difference(cached, stored).is_none()
}

/// Returns the difference of a cached object from the stored one.
///
/// Only what is cached is compared.
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

/// Returns the path to the first difference.
///
/// The values are left out: they may be a Secret's.
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
