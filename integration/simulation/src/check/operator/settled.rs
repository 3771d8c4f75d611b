//! Shops at rest: children and statuses match the specs, deleted shops left nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use lariat_cluster::StoredObject;
use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{Event, Moment, Rest};
use serde_json::Value;

use super::Operators;
use super::children::is_child;
use crate::check::{Check, Findings};
use crate::oracle::Oracle;
use crate::shop::{self, OWNER_UID, READY};

/// At rest, children and statuses match the newest specs and applied contents.
///
/// `Reconcile::apply` "brings the objects the reconciled one owns to what is wanted, … and deletes those it does not
/// want any more", taking back what others changed; the garbage collector deletes the rest. No shop is stuck in its
/// deletion. `Reconciler::report_errors`: the condition is `True` after a success, and `False` while an object of
/// others is in the way. Two replicas of one operator have one field manager and one set, so they come to the same end.
#[derive(Default)]
pub(super) struct Settled {
    operators: Operators,
    /// The objects that were checked, so that replicas do not report the same twice.
    looked: BTreeSet<Arc<str>>,
}

impl Check for Settled {
    fn name(&self) -> &'static str {
        "shops are settled at rest"
    }

    fn saw(&mut self, _: &Oracle, _: &Moment, event: &Event) -> Findings {
        self.operators.saw(event);
        Vec::new()
    }

    fn at_rest(&mut self, oracle: &Oracle, rest: &Rest<'_>) -> Findings {
        let is_first = self.looked.is_empty();
        let process = &rest.incarnation.process;
        if !self.operators.has(process) {
            return Vec::new();
        }
        self.looked.insert(Arc::clone(process));
        if !is_first {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (key, object) in oracle.all(&shop::gvk()) {
            look_at_shop(oracle, key, object, &mut found);
        }
        for kind in [shop::config_maps(), shop::secrets()] {
            for (key, object) in oracle.all(&kind) {
                found.extend(left_over(oracle, &kind, key, object));
            }
        }
        found
    }
}

fn look_at_shop(oracle: &Oracle, key: &ObjectKey, object: &StoredObject, found: &mut Findings) {
    let json = shop::json_of(object);
    if object.is_deleting() {
        found.push(format!("shop {key} is stuck in its deletion"));
        return;
    }
    if shop::wants_finalizer(&json) && !shop::has_finalizer(&json) {
        found.push(format!("shop {key} has no finalizer"));
    }
    for ((kind, child), wanted) in shop::wanted_by_key(key, &json) {
        let of = format!("{} {child} of shop {key}", kind.kind());
        match oracle.now(&kind, &child) {
            None => found.push(format!("{of} is missing")),
            // An object of others blocks the name. What the shop has to report of it is checked with the status below.
            Some(is) if !is_of(is, object.uid()) => {}
            Some(is) => {
                let is = shop::json_of(is);
                let (data, labels) = (&is["data"], &is["metadata"]["labels"]);
                let wants_labels = &wanted["metadata"]["labels"];
                // Fields of others may be there in addition: server-side apply owns only the fields it sent.
                if !has(data, &wanted["data"]) || !has(labels, wants_labels) {
                    found.push(format!("{of} is not as wanted"));
                }
                if is["metadata"]["ownerReferences"][0]["uid"] != object.uid() {
                    found.push(format!("{of} has no reference to it"));
                }
            }
        }
    }
    found.extend(
        wrong_status(&json, is_blocked(oracle, key, object)).map(|what| {
            format!(
                "shop {key} (generation {}): {what}",
                json["metadata"]["generation"]
            )
        }),
    );
}

/// Returns the violation by the status of a shop at rest.
fn wrong_status(shop: &Value, is_blocked: bool) -> Option<String> {
    let (status, generation) = (&shop["status"], &shop["metadata"]["generation"]);
    if status["observedGeneration"] != *generation {
        return Some(format!("the status is of {}", status["observedGeneration"]));
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    for (kind, word) in [(READY, "Ready"), ("Synced", "Synced")] {
        let condition = conditions.clone().find(|each| each["type"] == kind);
        let wanted = if is_blocked { "False" } else { "True" };
        let is = condition.map_or(&Value::Null, |condition| &condition["status"]);
        if is != wanted {
            return Some(format!("{word} is {is} instead of {wanted}"));
        }
    }
    None
}

/// Returns the violation by an object of a set that is there at rest.
fn left_over(
    oracle: &Oracle,
    kind: &Gvk,
    key: &ObjectKey,
    object: &StoredObject,
) -> Option<String> {
    let owner = object
        .labels()
        .get(OWNER_UID)
        .filter(|_| is_child(object))?;
    let shops = shop::gvk();
    let Some((name, shop)) = oracle.all(&shops).find(|(_, shop)| shop.uid() == owner) else {
        return Some(format!(
            "{} {key} is left of a shop that is gone ({owner})",
            kind.kind()
        ));
    };
    // Nothing is pruned in a call in which something could not be applied.
    if is_blocked(oracle, name, shop) {
        return None;
    }
    let wanted = shop::wanted_by_key(name, &shop::json_of(shop));
    let is_wanted = wanted.contains_key(&(kind.clone(), key.clone()));
    (!is_wanted).then(|| format!("{} {key} is not wanted by shop {name}", kind.kind()))
}

/// Returns whether an object of others has the name of a child.
pub(super) fn is_blocked(oracle: &Oracle, key: &ObjectKey, shop: &StoredObject) -> bool {
    let mut wanted = shop::wanted_by_key(key, &shop::json_of(shop)).into_keys();
    wanted.any(|(kind, child)| {
        let is = oracle.now(&kind, &child);
        is.is_some_and(|is| !is_of(is, shop.uid()))
    })
}

fn is_of(object: &StoredObject, uid: &str) -> bool {
    object.labels().get(OWNER_UID) == Some(uid)
}

/// Returns whether an object has all fields of another.
fn has(object: &Value, wanted: &Value) -> bool {
    let mut fields = wanted.as_object().into_iter().flatten();
    fields.all(|(name, value)| object[name] == *value)
}

#[cfg(test)]
mod tests {
    use super::super::harness::OperatorHarness;
    use super::*;
    use serde_json::json;

    /// Makes everything as a shop wants it.
    async fn settle(harness: &mut OperatorHarness) -> String {
        let uid = harness.create_shop("o1", 0b1).await;
        let shop = shop::spec(0b1);
        for ((kind, child), mut object) in shop::wanted_by_key(&OperatorHarness::key("o1"), &shop) {
            object["metadata"]["labels"][OWNER_UID] = uid.as_str().into();
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "sim.dev/v1", "kind": "Shop", "name": "o1", "uid": uid,
                "controller": true,
            }]);
            harness.create(&kind, child.name(), &object).await;
        }
        let condition = |kind: &str| json!({"type": kind, "status": "True"});
        let conditions = [condition("Ready"), condition("Synced")];
        let status = json!({"observedGeneration": 1, "conditions": conditions});
        harness.patch_status("o1", &json!({"status": status})).await;
        uid
    }

    async fn settled() -> OperatorHarness {
        let mut harness = OperatorHarness::new(Settled::default()).await;
        harness.operates();
        settle(&mut harness).await;
        harness
    }

    #[tokio::test]
    async fn a_shop_that_has_all_it_wants_is_settled() {
        let mut harness = settled().await;
        harness.rest();
        assert!(harness.all().is_empty(), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn children_that_are_missing_or_changed_or_too_many_are_reported() {
        let maps = shop::config_maps();
        let mut harness = settled().await;
        harness.delete(&maps, "o1-a").await;
        harness.rest();
        assert!(harness.found("ConfigMap default/o1-a of shop default/o1 is missing"));

        let mut harness = settled().await;
        harness
            .patch(&maps, "o1-a", &json!({"data": {"number": "9"}}))
            .await;
        harness.rest();
        assert!(harness.found("is not as wanted"), "{:?}", harness.all());

        let mut harness = settled().await;
        let uid = harness.uid(&shop::gvk(), "o1");
        let labels = json!({"metadata": {"labels": {OWNER_UID: uid}}});
        harness.create(&maps, "o1-z", &labels).await;
        harness.rest();
        assert!(harness.found("o1-z is not wanted"), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn what_is_left_of_a_shop_that_is_gone_is_reported() {
        let mut harness = OperatorHarness::new(Settled::default()).await;
        harness.operates();
        let labels = json!({"metadata": {"labels": {OWNER_UID: "gone"}}});
        harness.create(&shop::config_maps(), "o1-a", &labels).await;
        harness.rest();
        assert!(harness.found("is left of a shop"), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn a_shop_that_is_stuck_or_says_what_is_not_so_is_reported() {
        let mut harness = settled().await;
        harness.delete(&shop::gvk(), "o1").await;
        harness.rest();
        assert!(
            harness.found("stuck in its deletion"),
            "{:?}",
            harness.all()
        );

        let mut harness = settled().await;
        harness
            .patch(&shop::gvk(), "o1", &json!({"spec": {"more": 1}}))
            .await;
        harness.rest();
        assert!(harness.found("the status is of 1"), "{:?}", harness.all());

        let mut harness = settled().await;
        harness.delete(&shop::config_maps(), "o1-a").await;
        harness
            .create(&shop::config_maps(), "o1-a", &json!({}))
            .await;
        harness.rest();
        assert!(harness.found("instead of \"False\"") || harness.found("instead of False"));
    }
}
