//! A deletion and a creation as by another client.
//!
//! It finds clients that identify objects by name instead of uid.

use std::sync::Arc;

use lariat_apimachinery::object::metadata_mut;
use serde_json::Value;

use crate::store::{Draft, Range, Stored, Write};
use crate::verbs::Call;

/// Replaces objects of a name by others of the same name.
pub(super) fn recreate(call: &Call, name: &str) {
    let name = match name {
        "" => call.name(),
        name => name,
    };
    let range = Range {
        namespace: call.namespace().filter(|_| call.resource.namespaced),
        ..Range::default()
    };
    let Ok(page) = call.server.store.range(call.resource.table, &range) else {
        return;
    };
    let named = page.objects.iter().filter(|each| each.key().name() == name);
    for stored in named {
        replace(call, stored);
    }
}

fn replace(call: &Call, stored: &Arc<Stored>) {
    let mut object = stored.object();
    let metadata = metadata_mut(&mut object);
    for mark in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata.remove(mark);
    }
    metadata.insert("uid".into(), call.server.random.uid().into());
    metadata.insert("creationTimestamp".into(), call.server.clock.now().into());
    if let Some(generation) = metadata.get_mut("generation") {
        *generation = Value::from(1);
    }
    let (table, key) = (call.resource.table, stored.key());
    let delete = Write::new(table, key, Some(stored.revision()), None);
    // If another client was faster, the object is another one already.
    if call.server.store.commit(delete).is_ok() {
        let create = Write::new(table, key, None, Some(Draft::new(&object)));
        drop(call.server.store.commit(create));
    }
}
