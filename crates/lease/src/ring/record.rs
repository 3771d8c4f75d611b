//! The contents of a member's lease beyond those of an election.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease as Object;

use crate::record::Record;

/// The label that selects the leases of a ring; its value is the ring's name.
pub(crate) const RING: &str = "lariat.dev/ring";

/// The annotation with the members to which the holder has handed over their keys.
pub(crate) const ACKS: &str = "lariat.dev/ring-acks";

/// Returns the members to which the lease's holder has handed over their keys.
pub(crate) fn acks_of(object: &Object) -> BTreeSet<Arc<str>> {
    let annotations = object.metadata.annotations.as_ref();
    let text = annotations.and_then(|annotations| annotations.get(ACKS));
    let names = text.map_or("", String::as_str).split(',');
    names
        .filter(|name| !name.is_empty())
        .map(Arc::from)
        .collect()
}

/// Adds the ring's label to a new lease.
pub(crate) fn labelled(mut object: Object, ring: &str) -> Object {
    let label = (RING.to_owned(), ring.to_owned());
    object.metadata.labels = Some(BTreeMap::from([label]));
    object
}

/// Returns the next state of a member's lease.
pub(crate) fn renewed(record: &Record, object: &Object, acks: &BTreeSet<Arc<str>>) -> Object {
    let mut object = record.replace(object);
    let names: Vec<&str> = acks.iter().map(|name| &**name).collect();
    let annotations = object.metadata.annotations.get_or_insert_default();
    annotations.insert(ACKS.to_owned(), names.join(","));
    object
}

/// Returns whether two states have the same lease, holder and renewal.
pub(crate) fn is_same_state(one: &Object, other: &Object) -> bool {
    one.metadata.uid == other.metadata.uid && Record::of(one) == Record::of(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(uid: &str, renewed: i64) -> Object {
        let now = jiff::Timestamp::from_second(renewed).expect("in range");
        let mut object = Record::new(&"me".into(), 15, now).create("a", "shops");
        object.metadata.uid = Some(uid.to_owned());
        object
    }

    #[test]
    fn lease_state_changes_when_it_is_renewed_or_created_again() {
        let state = lease("u", 1);
        assert!(is_same_state(&state, &lease("u", 1)));
        assert!(!is_same_state(&state, &lease("u", 2)), "renewed");
        assert!(!is_same_state(&state, &lease("v", 1)), "created again");
    }
}
