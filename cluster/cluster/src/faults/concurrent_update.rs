//! A change as by another client, for updates that are to conflict.

use lariat_apimachinery::object::{Object, metadata_mut};
use serde_json::{Value, json};

use crate::store::Stored;
use crate::strategy::{self, Part, Replacement};
use crate::verbs::{self, Call};

/// The annotation that changes.
const ANNOTATION: &str = "lariat/touched";

/// Changes the object a request is about, if it exists.
pub(super) fn update_concurrently(call: &Call) {
    let key = call.resource.key(call.namespace(), call.name());
    while let Some(current) = call.server.store.get(call.resource.table, &key) {
        let changed = changed_by_another(call, &current);
        let replaced = changed
            .and_then(|changed| verbs::replace(&call.server, &call.resource, &current, &changed));
        // An object that admits no change is left as it is; one that was just changed is tried again.
        let now = call.server.store.get(call.resource.table, &key);
        let raced = now.is_some_and(|now| now.revision() != current.revision());
        if replaced.is_some() || !raced {
            return;
        }
    }
}

fn changed_by_another(call: &Call, current: &Stored) -> Option<Replacement> {
    let mut old = current.object();
    call.resource.set_type(&mut old);
    let mut new: Object = old.clone();
    let annotations = metadata_mut(&mut new)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    let value = Value::from(current.revision().to_string());
    annotations
        .as_object_mut()?
        .insert(ANNOTATION.into(), value);
    strategy::replacement(&call.resource, Part::Main, &old, new).ok()
}
