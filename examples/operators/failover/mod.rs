//! A counter that only one of several replicas increments: the leader. The others stand by.
//!
//! The program only adds one line to a factory: `leader_election`. Every replica fills its caches and its queue;
//! workers start when it leads. Writes of handlers are refused as soon as another replica may hold the lease.

pub mod replica;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::cache::Change;
use lariat::cache::KindOptions;
use lariat::kube::api::{Api, Patch, PatchParams};
use lariat::prelude::*;
use lariat::{Lease, Selection};
use serde_json::json;

use crate::lasting;

/// The name of the lease, and of the counter in the story.
pub const NAME: &str = "counter";

/// Returns the lease of a replica; its times are in the proportions of client-go's 15, 10 and 2 seconds.
pub fn lease(namespace: &str, replica: &str, duration: Duration) -> Lease {
    let lease = Lease::new(NAME).namespace(namespace).identity(replica);
    lasting(lease, duration)
}

/// Creates the program: the leader adds one to each counter of a namespace every period, and calls `log` with the sum.
///
/// # Errors
///
/// The lease is invalid.
pub fn factory<L>(
    client: Client,
    namespace: &str,
    lease: Lease,
    period: Duration,
    log: L,
) -> Result<SharedControllerFactory>
where
    L: Fn(u64) + Clone + Send + Sync + 'static,
{
    let ours = Selection::all().in_namespaces([namespace]);
    let cache = KindOptions::default().selection(ours);
    let kind = ControllerOptions::default().cache(cache);
    let factory = SharedControllerFactory::builder(client)
        .kind_options(Gvk::new("", "v1", "ConfigMap"), kind)
        .leader_election(lease)
        .build();
    let leadership = factory.leadership().context("the lease is invalid")?;
    // Not for its own writes.
    let added = Predicate::new(|change| matches!(change, Change::Added { .. }));
    let options = HandlerOptions::default().only(added);
    let handler = move |cx: Context<ConfigMap>| {
        let (leadership, log) = (leadership.clone(), log.clone());
        async move {
            let Some(count) = count(&cx, leadership.identity()).await? else {
                return Ok(Outcome::done());
            };
            log(count);
            Ok(Outcome::requeue_after(period))
        }
    };
    let counters = factory.for_object::<ConfigMap>();
    counters.register_handler("count", options.handler(handler))?;
    Ok(factory)
}

/// Adds one to a counter, with the replica's name; none if it is deleted, or is not a counter.
async fn count(cx: &Context<ConfigMap>, replica: &str) -> Result<Option<u64>, HandlerError> {
    let counter = cx.object()?;
    let data = counter.as_ref().and_then(|counter| counter.data.as_ref());
    let Some(count) = data.and_then(|data| data.get("count")?.parse::<u64>().ok()) else {
        return Ok(None);
    };
    // Without a resource version: only the lease keeps a former leader from writing.
    let next = json!({"data": {"count": (count + 1).to_string(), "by": replica}});
    let namespace = cx.key().namespace().unwrap_or_default();
    let counters: Api<ConfigMap> = Api::namespaced(cx.client(), namespace);
    let (name, params) = (cx.key().name(), PatchParams::default());
    counters.patch(name, &params, &Patch::Merge(next)).await?;
    Ok(Some(count + 1))
}
