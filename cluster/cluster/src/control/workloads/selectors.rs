//! Indexes of the Services and ReplicaSets that select Pods, and of Pods without a controller.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Bound;

use lariat_core::{LabelSelector, Labels, ObjectKey};
use serde_json::Value;

use super::kind::Kind;
use crate::control::metadata::Metadata;
use crate::store::{Event, EventType, Stored};

/// The selectors, which every commit keeps up to date.
#[derive(Debug, Default)]
pub(super) struct Selectors {
    services: BTreeMap<ObjectKey, LabelSelector>,
    replica_sets: BTreeMap<ObjectKey, LabelSelector>,
    /// Pods without a controller.
    orphans: BTreeMap<ObjectKey, Labels>,
}

impl Selectors {
    /// Observes a change of a Service or a ReplicaSet.
    pub(super) fn observe(&mut self, kind: Kind, event: &Event) {
        let object = Value::Object(event.object.object());
        let (all, selector) = match kind {
            Kind::Service => (&mut self.services, of_map(&object["spec"]["selector"])),
            _ => (&mut self.replica_sets, of_set(&object["spec"]["selector"])),
        };
        let key = event.object.key();
        match selector.filter(|_| event.event != EventType::Deleted) {
            Some(selector) => all.insert(key.clone(), selector),
            None => all.remove(key),
        };
    }

    /// Observes a change of a Pod; returns old and new selectors and adopters.
    pub(super) fn observe_pod(&mut self, event: &Event) -> Vec<(Kind, ObjectKey)> {
        let pod = &event.object;
        let states = [Some(pod), event.previous.as_ref()].into_iter().flatten();
        let labels: Vec<&Labels> = states.map(|each| each.labels()).collect();
        let services = selecting(&self.services, pod.key(), &labels);
        let mut concerned: Vec<(Kind, ObjectKey)> =
            services.map(|key| (Kind::Service, key)).collect();
        if event.event == EventType::Deleted || !is_orphan(pod) {
            self.orphans.remove(pod.key());
            return concerned;
        }
        self.orphans.insert(pod.key().clone(), pod.labels().clone());
        // By the present labels alone: what selected it before cannot adopt it.
        let sets = selecting(&self.replica_sets, pod.key(), &labels[..1]);
        concerned.extend(sets.map(|key| (Kind::ReplicaSet, key)));
        concerned
    }

    /// Iterates over the Pods without a controller that a ReplicaSet selects.
    pub(super) fn orphans_of(&self, set: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        let selector = self.replica_sets.get(set);
        let orphans = in_namespace(&self.orphans, set);
        let is_selected = move |labels| selector.is_some_and(|each| each.matches(labels));
        orphans
            .filter(move |(_, labels)| is_selected(labels))
            .map(|(key, _)| key)
    }

    /// Returns whether a ReplicaSet selects labels, or is not known to.
    pub(super) fn is_selected(&self, set: &ObjectKey, labels: &Labels) -> bool {
        let selector = self.replica_sets.get(set);
        selector.is_none_or(|selector| selector.matches(labels))
    }
}

fn is_orphan(pod: &Stored) -> bool {
    let owners = Metadata::owners_of(pod);
    !owners.iter().any(|owner| owner.controller == Some(true))
}

/// Iterates over the entries in the namespace of a key.
fn in_namespace<'a, T>(
    all: &'a BTreeMap<ObjectKey, T>,
    key: &ObjectKey,
) -> impl Iterator<Item = (&'a ObjectKey, &'a T)> + use<'a, T> {
    let namespace = key.namespace().unwrap_or_default();
    // "0" is the character behind "/".
    let (start, end) = (format!("{namespace}/"), format!("{namespace}0"));
    let bounds = (
        Bound::Included(start.as_str()),
        Bound::Excluded(end.as_str()),
    );
    all.range::<str, _>(bounds)
}

fn selecting<'a>(
    all: &'a BTreeMap<ObjectKey, LabelSelector>,
    pod: &ObjectKey,
    states: &'a [&'a Labels],
) -> impl Iterator<Item = ObjectKey> + use<'a> {
    let near = in_namespace(all, pod);
    let selects = |selector: &LabelSelector| states.iter().any(|labels| selector.matches(labels));
    near.filter(move |(_, selector)| selects(selector))
        .map(|(key, _)| key.clone())
}

/// Reads the selector of a Service; without one it has none of the Pods.
pub(super) fn of_map(labels: &Value) -> Option<LabelSelector> {
    let labels = labels.as_object().filter(|labels| !labels.is_empty())?;
    let pair =
        |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or_default());
    labels
        .iter()
        .map(pair)
        .collect::<Vec<String>>()
        .join(",")
        .parse()
        .ok()
}

/// Reads a selector of labels and expressions.
fn of_set(selector: &Value) -> Option<LabelSelector> {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut terms: Vec<String> = labels
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let expressions = selector["matchExpressions"].as_array();
    terms.extend(expressions.into_iter().flatten().map(expression));
    terms.join(",").parse().ok()
}

fn expression(expression: &Value) -> String {
    let key = expression["key"].as_str().unwrap_or_default();
    let listed = expression["values"].as_array().into_iter().flatten();
    let values: Vec<&str> = listed.filter_map(Value::as_str).collect();
    let mut term = key.to_owned();
    let written = match expression["operator"].as_str().unwrap_or_default() {
        "In" => write!(term, " in ({})", values.join(",")),
        "NotIn" => write!(term, " notin ({})", values.join(",")),
        "DoesNotExist" => {
            term.insert(0, '!');
            Ok(())
        }
        _ => Ok(()),
    };
    written.expect("writing to a string cannot fail");
    term
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_read_with_all_their_operators() {
        let labels: Labels = [("app", "web"), ("tier", "front")].into_iter().collect();
        let is = |operator: &str, key: &str, values: Value| {
            let term = json!({"key": key, "operator": operator, "values": values});
            let set = json!({"matchLabels": {"app": "web"}, "matchExpressions": [term]});
            let selector = of_set(&set).expect("the selector is well formed");
            selector.matches(&labels)
        };
        assert!(is("In", "tier", json!(["front", "back"])));
        assert!(!is("NotIn", "tier", json!(["front"])));
        assert!(is("Exists", "tier", json!(null)));
        assert!(!is("DoesNotExist", "tier", json!(null)));
        assert!(of_map(&json!({})).is_none() && of_map(&json!(null)).is_none());
        assert!(of_map(&json!({"app": "web"})).is_some_and(|each| each.matches(&labels)));
    }
}
