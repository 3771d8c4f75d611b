//! A stored state as a client of some version sees it.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use lariat_apimachinery::schema;

use super::custom::prune;
use super::{autoscalers, custom};
use crate::store::{Draft, EventType, Stored};

/// Returns a state in the version of a resource.
pub(crate) fn present(resource: &Resource, stored: &Stored) -> Object {
    converted(resource, stored).unwrap_or_else(|| custom::present(resource, stored))
}

/// Returns a state as a resource shows it, if that is not how it was stored.
pub(crate) fn reread(resource: &Resource, stored: &Stored) -> Option<Stored> {
    match converted(resource, stored) {
        Some(object) => Some(Draft::new(&object).stamp(stored.revision(), EventType::Modified)),
        None => custom::reread(resource, stored),
    }
}

/// The names of members of Events: in the core group, and in their own.
///
/// Source: `k8s.io/kubernetes/pkg/apis/events/v1/conversion.go`.
const EVENT_MEMBERS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Converts an object of one built-in version into another.
type Converter = fn(&Resource, Object) -> Object;

fn converter(resource: &Resource) -> Option<Converter> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("" | "events.k8s.io", "events") => Some(event),
        ("autoscaling", "horizontalpodautoscalers") => Some(autoscaler),
        _ => None,
    }
}

/// Converts an object that was written in another built-in version.
fn converted(resource: &Resource, stored: &Stored) -> Option<Object> {
    let convert = converter(resource)?;
    // The head has apiVersion and kind, so no object has to be decoded to see that it is of this version.
    if stored.head() == resource.head().as_bytes() {
        return None;
    }
    let mut object = convert(resource, stored.object());
    resource.set_type(&mut object);
    // Go writes some members even if they are empty, and which ones differs between the versions.
    schema::fill_zeros(resource.types().root(), &mut object);
    Some(object)
}

/// Converts an object between two versions of its kind.
pub(crate) fn in_version(from: &Resource, to: &Resource, object: Object) -> Object {
    if from.group == to.group && from.version == to.version {
        return object;
    }
    let converter = converter(to);
    let mut object = match converter {
        Some(convert) => convert(to, object),
        None => object,
    };
    to.set_type(&mut object);
    if to.rules.custom {
        prune(to, &mut object);
    } else if converter.is_some() {
        schema::fill_zeros(to.types().root(), &mut object);
    }
    object
}

fn autoscaler(resource: &Resource, mut object: Object) -> Object {
    match resource.version.as_str() {
        "v1" => autoscalers::to_first(&mut object),
        _ => autoscalers::to_second(&mut object),
    }
    object
}

/// Converts an Event of the other of the two groups.
fn event(resource: &Resource, object: Object) -> Object {
    let to_core = resource.group.is_empty();
    let name = |member: String| {
        let pair = EVENT_MEMBERS.iter().find(|(core, own)| {
            let from = if to_core { own } else { core };
            *from == member
        });
        match pair {
            Some((core, own)) => (if to_core { *core } else { *own }).to_owned(),
            None => member,
        }
    };
    let members = object.into_iter();
    let mut object: Object = members
        .map(|(member, value)| (name(member), value))
        .collect();
    if !to_core {
        // The core group has these even if they are empty.
        for member in ["reportingController", "reportingInstance"] {
            if object.get(member).is_some_and(|text| *text == "") {
                object.remove(member);
            }
        }
    }
    object
}
