//! Statuses go forward.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lariat_cluster::{Commit, StoredObject};
use lariat_sim::internals::{Event, Moment};
use serde_json::Value;

use super::SHOPS;
use crate::check::{Check, Findings};
use crate::oracle::Oracle;
use crate::shop;

/// The observed generations of a status and its conditions never go back.
///
/// `StatusWriter`: "The state is named in the request: when it is not the newest after all, the newest is read and the
/// difference worked out again", so a replica that is behind does not write over what another knows better. That holds
/// for conditions; the generation of the status itself is a field of the program's, which two replicas that run at the
/// same time write as each knows it. A restored backup begins again, once the program can have noticed it.
#[derive(Default)]
pub(super) struct Forward {
    observed: BTreeMap<String, BTreeMap<String, i64>>,
    /// The replicas that have run so far.
    replicas: BTreeSet<Arc<str>>,
}

impl Check for Forward {
    fn name(&self) -> &'static str {
        "statuses go forward"
    }

    fn saw(&mut self, oracle: &Oracle, moment: &Moment, event: &Event) -> Findings {
        match event {
            Event::IncarnationBegan(incarnation)
                if incarnation.process.starts_with("operator-") =>
            {
                self.replicas.insert(Arc::clone(&incarnation.process));
                Vec::new()
            }
            Event::Committed(Commit::Stored(object)) if object.resource() == SHOPS => {
                // Recorded even if it is not judged: later states are compared with it.
                let found = self.stored(object);
                if oracle.may_be_unnoticed(moment) {
                    return Vec::new();
                }
                found
            }
            Event::Committed(Commit::Removed { last }) if last.resource() == SHOPS => {
                self.observed.remove(last.uid());
                Vec::new()
            }
            Event::Committed(Commit::Reset { .. }) => {
                self.observed.clear();
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

impl Forward {
    fn stored(&mut self, object: &StoredObject) -> Findings {
        let now = observed(&shop::json_of(object)["status"]);
        let before = self
            .observed
            .insert(object.uid().to_owned(), now.clone())
            .unwrap_or_default();
        let back = before.iter().filter_map(|(what, before)| {
            // The program writes this field itself, without a comparison with what another replica wrote.
            if *what == WHOLE && self.replicas.len() > 1 {
                return None;
            }
            let now = now.get(what).filter(|now| *now < before)?;
            Some(format!(
                "{} of {} goes back from generation {before} to {now}",
                what,
                object.key()
            ))
        });
        back.collect()
    }
}

const WHOLE: &str = "the status";

/// Returns the generations of the status itself and of its conditions.
fn observed(status: &Value) -> BTreeMap<String, i64> {
    let of = |value: &Value| value["observedGeneration"].as_i64();
    let conditions = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|each| {
            let kind = each["type"].as_str()?;
            Some((format!("condition {kind}"), of(each)?))
        });
    let whole = of(status).map(|generation| (WHOLE.to_owned(), generation));
    conditions.chain(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::super::harness::OperatorHarness;
    use super::*;
    use serde_json::json;

    async fn status(harness: &mut OperatorHarness, generation: i64, condition: i64) {
        let condition = json!({"type": "Ready", "observedGeneration": condition});
        let status = json!({"observedGeneration": generation, "conditions": [condition]});
        harness.patch_status("o1", &json!({"status": status})).await;
    }

    #[tokio::test]
    async fn a_status_that_goes_back_is_reported() {
        let mut harness = OperatorHarness::new(Forward::default()).await;
        harness.create_shop("o1", 0).await;
        status(&mut harness, 1, 2).await;
        status(&mut harness, 2, 2).await;
        assert!(harness.all().is_empty(), "{:?}", harness.all());
        status(&mut harness, 1, 2).await;
        assert!(harness.found("the status of"), "{:?}", harness.all());
        status(&mut harness, 1, 1).await;
        assert!(harness.found("condition Ready of"), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn another_shop_of_the_name_begins_again() {
        let mut harness = OperatorHarness::new(Forward::default()).await;
        harness.create(&shop::gvk(), "o1", &shop::spec(0)).await;
        status(&mut harness, 5, 5).await;
        harness.delete(&shop::gvk(), "o1").await;
        harness.create(&shop::gvk(), "o1", &shop::spec(0)).await;
        status(&mut harness, 1, 1).await;
        assert!(harness.all().is_empty(), "{:?}", harness.all());
    }
}
