//! One handler for Deployments and StatefulSets, which reports desired and ready replicas.
//!
//! A trait covers what the two kinds have in common, and the handler is generic. So no switch on types is needed, and
//! each kind keeps its type, its watch, its cache and its queue. The factory runs and stops them together.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use lariat::cache::View;
use lariat::prelude::*;
use parking_lot::Mutex;

#[cfg(test)]
mod tests;

/// A kind that runs a number of replicas.
pub trait Workload: View {
    /// Returns the desired and the ready replicas.
    fn replicas(&self) -> Replicas;
}

/// Replicas of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replicas {
    /// The number of ready replicas.
    pub ready: i32,
    /// The number of desired replicas.
    pub wanted: i32,
}

impl Workload for Deployment {
    fn replicas(&self) -> Replicas {
        let ready = self
            .status
            .as_ref()
            .and_then(|status| status.ready_replicas);
        let wanted = self.spec.as_ref().and_then(|spec| spec.replicas);
        Replicas::of(ready, wanted)
    }
}

impl Workload for StatefulSet {
    fn replicas(&self) -> Replicas {
        let ready = self
            .status
            .as_ref()
            .and_then(|status| status.ready_replicas);
        let wanted = self.spec.as_ref().and_then(|spec| spec.replicas);
        Replicas::of(ready, wanted)
    }
}

impl Replicas {
    /// The API server omits zero ready replicas, and one replica is the default.
    fn of(ready: Option<i32>, wanted: Option<i32>) -> Self {
        Self {
            ready: ready.unwrap_or(0),
            wanted: wanted.unwrap_or(1),
        }
    }
}

/// A report: the kind, the key, and the replicas, or `None` when the workload is deleted.
type Report = dyn Fn(&Gvk, &ObjectKey, Option<Replicas>) + Send + Sync;

/// Reports workloads whose numbers change.
#[derive(Clone)]
struct Reporter {
    report: Arc<Report>,
    last: Arc<Mutex<HashMap<(Gvk, ObjectKey), Replicas>>>,
}

/// Registers the handler for both kinds, or for neither.
///
/// # Errors
///
/// One of the kinds has such a handler already.
pub fn register(
    factory: &SharedControllerFactory,
    report: impl Fn(&Gvk, &ObjectKey, Option<Replicas>) + Send + Sync + 'static,
) -> Result<()> {
    let reporter = Reporter {
        report: Arc::new(report),
        last: Arc::default(),
    };
    let mut both = factory.transaction();
    both.register_handler(
        &factory.for_object::<Deployment>(),
        "report",
        reporter.clone(),
    );
    both.register_handler(&factory.for_object::<StatefulSet>(), "report", reporter);
    both.commit()?;
    Ok(())
}

impl<W: Workload> Handler<W> for Reporter {
    async fn handle(&self, cx: Context<W>) -> HandlerResult {
        let now = cx.object()?.map(|workload| workload.replicas());
        let key = (cx.gvk().clone(), cx.key().clone());
        let before = match now {
            Some(replicas) => self.last.lock().insert(key, replicas),
            None => self.last.lock().remove(&key),
        };
        if now != before {
            (self.report)(cx.gvk(), cx.key(), now);
        }
        Ok(Outcome::done())
    }
}
