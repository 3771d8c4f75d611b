//! Ends of shops, as `on_gone` reports them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lariat_cluster::Commit;
use lariat_core::ObjectKey;

use crate::check::{Check, Findings};
use crate::deed::Deed;
use crate::event::{Event, Moment};
use crate::oracle::{Oracle, SWEEP};
use crate::shop;

/// The end of a shop is reported once, and only of one that is gone.
///
/// `Reconciler::on_gone`: "Calls a function once an object is gone … It is called again only after an error that is to
/// be tried again, or a panic". Shops of which a restored backup knows may end twice. An end is remembered for as long
/// as its process lives and a state of the shop may still be shown.
#[derive(Default)]
pub(super) struct Ends {
    reported: BTreeSet<(Arc<str>, u32, ObjectKey, String)>,
    /// When ends were forgotten last.
    swept: Duration,
}

impl Check for Ends {
    fn name(&self) -> &'static str {
        "ends are reported once"
    }

    fn saw(&mut self, oracle: &Oracle, moment: &Moment, event: &Event) -> Findings {
        match event {
            Event::Committed(Commit::Reset { .. }) => {
                self.reported.clear();
                Vec::new()
            }
            Event::Did {
                process,
                life,
                deed: Deed::Ended { key, uid },
            } => {
                let mut found = Vec::new();
                self.forget(oracle, moment.at);
                let end = (Arc::clone(process), *life, key.clone(), uid.clone());
                if !self.reported.insert(end) {
                    found.push(format!("the end of {key} ({uid}) is reported twice"));
                }
                let now = oracle.now(&shop::gvk(), key);
                let is_there = now.is_some_and(|now| now.uid() == uid);
                if is_there && oracle.epoch() <= 1 {
                    found.push(format!(
                        "the end of {key} ({uid}) is reported, but it is there"
                    ));
                }
                found
            }
            Event::Life {
                process,
                life,
                is_alive: false,
            } => {
                self.reported
                    .retain(|end| end.0 != *process || end.1 != *life);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

impl Ends {
    fn forget(&mut self, oracle: &Oracle, now: Duration) {
        if now >= self.swept + SWEEP {
            self.swept = now;
            self.reported
                .retain(|(_, _, key, uid)| oracle.remembers(&shop::gvk(), key, uid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;
    use serde_json::json;

    fn ended(stage: &mut Stage, uid: &str) {
        let (key, uid) = (Stage::key("o1"), uid.to_owned());
        stage.did(Deed::Ended { key, uid });
    }

    #[tokio::test]
    async fn an_end_that_is_reported_once_is_fine_and_twice_is_not() {
        let mut stage = Stage::new(Ends::default()).await;
        ended(&mut stage, "a");
        assert!(stage.all().is_empty(), "{:?}", stage.all());
        ended(&mut stage, "a");
        assert!(stage.found("reported twice"), "{:?}", stage.all());
    }

    #[tokio::test]
    async fn an_end_is_forgotten_with_the_shop() {
        let mut stage = Stage::new(Ends::default()).await;
        let uid = stage.create_shop("o1", 0).await;
        stage.delete(&shop::gvk(), "o1").await;
        let patch = json!({"metadata": {"finalizers": null}});
        stage.patch(&shop::gvk(), "o1", &patch).await;
        ended(&mut stage, &uid);
        stage.wait(SWEEP);
        ended(&mut stage, &uid);
        assert!(stage.found("reported twice"), "a process may know the shop");
        stage.create_shop("o2", 0).await;
        stage.wait(4 * SWEEP);
        stage.create_shop("o3", 0).await;
        ended(&mut stage, &uid);
        assert_eq!(stage.all().len(), 1, "{:?}", stage.all());
    }

    #[tokio::test]
    async fn the_end_of_a_shop_that_is_there_is_reported() {
        let mut stage = Stage::new(Ends::default()).await;
        let uid = stage.create_shop("o1", 0).await;
        ended(&mut stage, &uid);
        assert!(stage.found("but it is there"), "{:?}", stage.all());
    }
}
