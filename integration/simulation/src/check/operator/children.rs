//! Objects of others, which operators leave alone.

use std::collections::BTreeMap;

use lariat_cluster::{Commit, StoredObject};
use lariat_core::ObjectKey;
use lariat_sim::internals::{Event, Moment};
use serde_json::Value;

use crate::check::{Check, Findings};
use crate::oracle::Oracle;
use crate::shop::{self, OPERATOR, OWNER_UID};

/// The operator neither writes nor labels objects of foreign clients.
///
/// `Reconcile::apply`: "Objects of others are never touched: neither what another owner controls, nor what exists
/// without being this owner's." Who wrote what is known from the managed fields that the server keeps. Deletions are
/// looked at by [`Prunes`](super::prunes::Prunes).
#[derive(Default)]
pub(super) struct Foreign {
    /// The uid of the present object, and whether foreign clients made it.
    made: BTreeMap<(String, ObjectKey), (String, bool)>,
}

impl Check for Foreign {
    fn name(&self) -> &'static str {
        "objects of others stay theirs"
    }

    fn saw(&mut self, _: &Oracle, _: &Moment, event: &Event) -> Findings {
        match event {
            Event::Committed(Commit::Stored(object)) if is_child(object) => self.stored(object),
            Event::Committed(Commit::Reset { .. }) => {
                // The objects of the backup are committed again next, and are judged as new ones.
                self.made.clear();
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

impl Foreign {
    fn stored(&mut self, object: &StoredObject) -> Findings {
        let place = (object.resource().to_owned(), object.key().clone());
        let is_new = self
            .made
            .get(&place)
            .is_none_or(|(uid, _)| uid != object.uid());
        if is_new {
            // The operator sets the label in the request that creates an object, so one that begins without it is
            // foreign.
            let made = (object.uid().to_owned(), !is_labelled(object));
            self.made.insert(place, made);
            return Vec::new();
        }
        let is_foreign = self
            .made
            .get(&place)
            .is_some_and(|(_, is_foreign)| *is_foreign);
        if !is_foreign || !(is_labelled(object) || is_written(object)) {
            return Vec::new();
        }
        vec![format!(
            "{} {} is foreign, and the operator wrote it at version {}",
            object.resource(),
            object.key(),
            object.revision()
        )]
    }
}

/// Returns whether an object is of a kind of children, and is not a ledger.
pub(super) fn is_child(object: &StoredObject) -> bool {
    matches!(object.resource(), "configmaps" | "secrets")
        && object.key().namespace() != Some(shop::LEDGERS)
}

pub(super) fn is_labelled(object: &StoredObject) -> bool {
    object.labels().get(OWNER_UID).is_some()
}

/// Returns whether the operator manages fields of an object.
fn is_written(object: &StoredObject) -> bool {
    let json = shop::json_of(object);
    let managers = json["metadata"]["managedFields"].as_array();
    let mut names = managers.into_iter().flatten();
    let of_operator = |entry: &Value| {
        let manager = entry["manager"].as_str();
        manager.is_some_and(|name| name.starts_with(OPERATOR))
    };
    names.any(of_operator)
}

#[cfg(test)]
mod tests {
    use super::super::harness::OperatorHarness;
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn a_foreign_object_that_the_operator_writes_is_reported() {
        let mut harness = OperatorHarness::new(Foreign::default()).await;
        harness.create(&shop::config_maps(), "o1", &json!({})).await;
        let fields = json!({"data": {"number": "1"}});
        harness.apply(&shop::config_maps(), "o1", &fields).await;
        assert!(harness.found("o1 is foreign"), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn what_foreign_clients_and_the_operator_write_of_their_own_is_fine() {
        let mut harness = OperatorHarness::new(Foreign::default()).await;
        let maps = shop::config_maps();
        harness.create(&maps, "o1", &json!({})).await;
        harness
            .patch(&maps, "o1", &json!({"data": {"number": "1"}}))
            .await;
        let ours = json!({"metadata": {"labels": {OWNER_UID: "u"}}});
        harness.apply(&maps, "o2", &ours).await;
        let fields = json!({"metadata": {"labels": {OWNER_UID: "u"}}, "data": {"number": "1"}});
        harness.apply(&maps, "o2", &fields).await;
        assert!(harness.all().is_empty(), "{:?}", harness.all());
    }
}
