//! Handles orders, in several replicas: each has its share of them.
//!
//! The program is as any other on a factory, and has one line more: `sharding`. Every order belongs to one replica. When a
//! replica joins or leaves, the orders that now belong to another are handled there, and no others.

pub mod replica;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::cache::KindOptions;
use lariat::kube::api::{Api, Patch, PatchParams};
use lariat::prelude::*;
use lariat::{Lease, Selection, ShardKey, Share};
use serde_json::json;

use crate::lasting;

/// The name of the ring, and the value of the label that orders have.
pub const RING: &str = "orders";

/// The label by which orders are found.
pub const APP: &str = "app";

/// The label that says which replica handled an order last.
pub const HANDLED_BY: &str = "handled-by";

/// Returns the lease of a replica; its times are in the proportions of client-go's 15, 10 and 2 seconds.
pub fn lease(namespace: &str, replica: &str, duration: Duration) -> Lease {
    let lease = Lease::new(RING).namespace(namespace).identity(replica);
    lasting(lease, duration)
}

/// Makes the program: it labels each order of its share with the replica's name, and calls `log` with the order's.
///
/// # Errors
///
/// Another handler has the name.
pub fn factory<L>(
    client: Client,
    namespace: &str,
    replica: &str,
    lease: Lease,
    log: L,
) -> Result<SharedControllerFactory>
where
    L: Fn(&str) + Clone + Send + Sync + 'static,
{
    let ours = Selection::all().in_namespaces([namespace]);
    let ours = ours.with_labels(format!("{APP}={RING}").parse()?);
    let cache = KindOptions::default().selection(ours);
    let factory = SharedControllerFactory::builder(client)
        .kind_options(config_map(), ControllerOptions::default().cache(cache))
        .sharding(lease)
        .build();
    // What it writes itself is no reason to handle an order again.
    let content = Predicate::on_updates(|old, new| old.labels() == new.labels());
    let options = HandlerOptions::default().only(content);
    let replica = replica.to_owned();
    let handler = move |cx: Context<ConfigMap>| {
        let (replica, log) = (replica.clone(), log.clone());
        async move {
            if handle(&cx, &replica).await? {
                log(cx.key().name());
            }
            Ok::<_, HandlerError>(Outcome::done())
        }
    };
    let orders = factory.for_object::<ConfigMap>();
    orders.register_handler_with("handle", options, handler)?;
    Ok(factory)
}

fn config_map() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

/// Handles an order, and signs it; returns whether there is one.
async fn handle(cx: &Context<ConfigMap>, replica: &str) -> Result<bool, HandlerError> {
    if cx.object()?.is_none() {
        return Ok(false);
    }
    // Without a resource version: what keeps another replica from writing is the ring alone.
    let signed = json!({"metadata": {"labels": {HANDLED_BY: replica}}});
    let namespace = cx.key().namespace().unwrap_or_default();
    let orders: Api<ConfigMap> = Api::namespaced(cx.client(), namespace);
    let (name, params) = (cx.key().name(), PatchParams::default());
    orders.patch(name, &params, &Patch::Merge(signed)).await?;
    Ok(true)
}

/// Returns the names of the orders that belong to a share, in order.
#[must_use]
pub fn orders_of(factory: &SharedControllerFactory, share: &Share) -> Vec<String> {
    let orders = factory.for_object::<ConfigMap>().cache().snapshot();
    let keys = orders.iter().map(|order| order.key());
    let ours = keys.filter(|key| share.holds(ShardKey::of_key(&config_map(), key)));
    ours.map(|key| key.name().to_owned()).collect()
}
