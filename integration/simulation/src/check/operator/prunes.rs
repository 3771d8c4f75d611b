//! Deletions by operators: only what is theirs, and not wanted.

use std::collections::BTreeMap;
use std::sync::Arc;

use lariat_cluster::{Commit, StoredObject};
use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{Event, Moment};

use super::Operators;
use super::children::{is_child, is_labelled};
use crate::check::{Check, Findings};
use crate::oracle::Oracle;
use crate::shop::{self, OWNER_UID};

/// An operator deletes no object of others, and none that its shop wants.
///
/// `Reconcile::apply` "deletes those it does not want any more", and the apply module's invariant is: "nothing is
/// pruned but the very state that was looked at and found to be ours". A spec may change while it is applied: a
/// deletion is wrong only if every state of the shop since the one the reconcile began with wants the object.
#[derive(Default)]
pub(super) struct Prunes {
    operators: Operators,
    /// Deletions under way, by the number of the request.
    deleting: BTreeMap<u64, Deletion>,
    /// The version each process was last called with, by shop.
    called: BTreeMap<(Arc<str>, ObjectKey), (String, u64)>,
}

struct Deletion {
    process: Arc<str>,
    resource: &'static str,
    key: ObjectKey,
    removed: Option<StoredObject>,
}

impl Check for Prunes {
    fn name(&self) -> &'static str {
        "only what is not wanted is pruned"
    }

    fn saw(&mut self, oracle: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.operators.saw(event);
        match event {
            Event::Began {
                handler,
                key,
                object: Some(shown),
                ..
            } if handler.kind == shop::gvk() => {
                let place = (Arc::clone(&handler.incarnation.process), key.clone());
                self.called
                    .insert(place, (shown.uid.clone(), shown.version));
            }
            Event::Sent { request, what } if self.operators.has(&moment.actor) => {
                if let Some((resource, key)) = deleted_by(what) {
                    let deletion = Deletion {
                        process: Arc::clone(&moment.actor),
                        resource,
                        key,
                        removed: None,
                    };
                    self.deleting.insert(*request, deletion);
                }
            }
            Event::Committed(Commit::Removed { last }) if is_child(last) => {
                // Several requests may be under way for the object: those that find nothing get a 404 and are not
                // judged.
                for deletion in self.deleting.values_mut() {
                    if deletion.key == *last.key() && deletion.resource == last.resource() {
                        deletion.removed = Some(last.clone());
                    }
                }
            }
            Event::Answered { request, result } => {
                let deletion = self.deleting.remove(request).filter(|_| result == "200");
                return deletion
                    .and_then(|each| self.judge(oracle, &each))
                    .into_iter()
                    .collect();
            }
            _ => {}
        }
        Vec::new()
    }
}

impl Prunes {
    fn judge(&self, oracle: &Oracle, deletion: &Deletion) -> Option<String> {
        let removed = deletion.removed.as_ref()?;
        let (resource, key) = (deletion.resource, &deletion.key);
        if !is_labelled(removed) {
            return Some(format!(
                "{resource} {key} is foreign, and the operator deleted it"
            ));
        }
        let owner = removed.labels().get(OWNER_UID)?;
        let shops = shop::gvk();
        let (name, _) = oracle.all(&shops).find(|(_, shop)| shop.uid() == owner)?;
        let (uid, version) = self
            .called
            .get(&(Arc::clone(&deletion.process), name.clone()))?;
        let states = oracle.states(&shops, name);
        // The first: a restored backup may have the version again, with other content.
        let from = states.iter().position(|past| past.is(uid, *version))?;
        let child = (gvk_of(resource), key.clone());
        let wants_always = states[from..].iter().all(|past| {
            // A later shop of the same name is another owner, which does not want these children.
            let state = past.object.as_ref().filter(|object| object.uid() == owner);
            state.is_some_and(|object| {
                let wanted = shop::wanted_by_key(name, &shop::json_of(object));
                !object.is_deleting() && wanted.contains_key(&child)
            })
        });
        wants_always.then(|| format!("{resource} {key} is deleted, but {name} wants it"))
    }
}

fn gvk_of(resource: &str) -> Gvk {
    if resource == "secrets" {
        return shop::secrets();
    }
    shop::config_maps()
}

/// Returns the child that a request deletes, if it is one.
fn deleted_by(what: &str) -> Option<(&'static str, ObjectKey)> {
    // Such as `DELETE /api/v1/namespaces/default/configmaps/o1-a?…`.
    let path = what
        .strip_prefix("DELETE ")?
        .split('?')
        .next()?
        .rsplit_once("/namespaces/")?
        .1;
    let (namespace, rest) = path.split_once('/')?;
    let (resource, name) = rest.split_once('/')?;
    let resource = ["configmaps", "secrets"]
        .into_iter()
        .find(|each| *each == resource)?;
    Some((resource, ObjectKey::namespaced(namespace, name)))
}

#[cfg(test)]
mod tests {
    use super::super::harness::OperatorHarness;
    use super::*;
    use serde_json::json;

    const PATH: &str = "DELETE /api/v1/namespaces/default/configmaps/";

    async fn prunes(harness: &mut OperatorHarness, name: &str) {
        harness.sent(1, &format!("{PATH}{name}?"));
        harness.delete(&shop::config_maps(), name).await;
        harness.answered(1, "200");
    }

    async fn child_of(harness: &mut OperatorHarness, uid: &str, name: &str) {
        let labels = json!({"metadata": {"labels": {OWNER_UID: uid}}});
        harness.create(&shop::config_maps(), name, &labels).await;
    }

    #[test]
    fn deletions_of_children_are_read_from_requests() {
        let key = ObjectKey::namespaced("default", "o1-a");
        assert_eq!(
            deleted_by(&format!("{PATH}o1-a?")),
            Some(("configmaps", key))
        );
        assert_eq!(
            deleted_by("PATCH /api/v1/namespaces/default/configmaps/o1"),
            None
        );
        assert_eq!(
            deleted_by("DELETE /apis/sim.dev/v1/namespaces/default/shops/o1"),
            None
        );
    }

    #[tokio::test]
    async fn a_child_that_is_wanted_and_deleted_is_reported() {
        let mut harness = OperatorHarness::new(Prunes::default()).await;
        harness.operates();
        let uid = harness.create_shop("o1", 0b1).await;
        harness.called("o1");
        child_of(&mut harness, &uid, "o1-a").await;
        prunes(&mut harness, "o1-a").await;
        assert!(harness.found("o1 wants it"), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn a_child_that_some_state_since_the_call_did_not_want_may_go() {
        let mut harness = OperatorHarness::new(Prunes::default()).await;
        harness.operates();
        let uid = harness.create_shop("o1", 0b1).await;
        child_of(&mut harness, &uid, "o1-a").await;
        harness.patch(&shop::gvk(), "o1", &shop::spec(0b10)).await;
        harness.called("o1");
        harness.patch(&shop::gvk(), "o1", &shop::spec(0b1)).await;
        prunes(&mut harness, "o1-a").await;
        assert!(harness.all().is_empty(), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn a_foreign_object_that_is_deleted_is_reported() {
        let mut harness = OperatorHarness::new(Prunes::default()).await;
        harness.operates();
        harness.create(&shop::config_maps(), "o1", &json!({})).await;
        prunes(&mut harness, "o1").await;
        assert!(harness.found("is foreign"), "{:?}", harness.all());
    }
}
