//! The lease of a member of a ring, and what is written into it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease as Object;

use crate::record::Record;

/// The label by which the leases of a ring are found; its value is the ring's name.
pub(crate) const RING: &str = "lariat.dev/ring";

/// The annotation with the names of the members to which this one has handed their keys over.
pub(crate) const ACKS: &str = "lariat.dev/ring-acks";

/// Returns the names of the members to which the holder of a lease has handed their keys over.
pub(crate) fn acks_of(object: &Object) -> BTreeSet<Arc<str>> {
    let annotations = object.metadata.annotations.as_ref();
    let text = annotations.and_then(|annotations| annotations.get(ACKS));
    let names = text.map_or("", String::as_str).split(',');
    names
        .filter(|name| !name.is_empty())
        .map(Arc::from)
        .collect()
}

/// Adds the label by which a new lease belongs to a ring.
pub(crate) fn labelled(mut object: Object, ring: &str) -> Object {
    let label = (RING.to_owned(), ring.to_owned());
    object.metadata.labels = Some(BTreeMap::from([label]));
    object
}

/// Makes the next state of a member's lease.
pub(crate) fn renewed(record: &Record, object: &Object, acks: &BTreeSet<Arc<str>>) -> Object {
    let mut object = record.replace(object);
    let names: Vec<&str> = acks.iter().map(|name| &**name).collect();
    let annotations = object.metadata.annotations.get_or_insert_default();
    annotations.insert(ACKS.to_owned(), names.join(","));
    object
}

/// Returns whether two states are of one lease and one holder, which has not renewed it in between.
pub(crate) fn is_same_state(one: &Object, other: &Object) -> bool {
    one.metadata.uid == other.metadata.uid && Record::of(one) == Record::of(other)
}
