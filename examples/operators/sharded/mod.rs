//! Orders, handled by several replicas: each has a share of them.
//!
//! The program only adds one line to a factory: `sharding`. Every order belongs to one replica. When a replica joins or
//! leaves, only the orders that move are handled again, by their new replica.

pub mod replica;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::cache::KindOptions;
use lariat::kube::api::{Api, Patch, PatchParams};
use lariat::lease::{ShardKey, Share};
use lariat::prelude::*;
use lariat::{Lease, Selection};
use serde_json::json;

use crate::lasting;

/// The name of the ring, and the label value of orders.
pub const RING: &str = "orders";

/// The label of orders.
pub const APP: &str = "app";

/// The label with the replica that handled an order last.
pub const HANDLED_BY: &str = "handled-by";

/// Returns the lease of a replica; its times are in the proportions of client-go's 15, 10 and 2 seconds.
pub fn lease(namespace: &str, replica: &str, duration: Duration) -> Lease {
    let lease = Lease::new(RING).namespace(namespace).identity(replica);
    lasting(lease, duration)
}

/// Creates the program: it labels each order of its share with the replica's name, and calls `log` with the order's.
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
    // Not for its own writes.
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
    orders.register_handler("handle", options.handler(handler))?;
    Ok(factory)
}

fn config_map() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

/// Handles an order, and labels it; returns whether it exists.
async fn handle(cx: &Context<ConfigMap>, replica: &str) -> Result<bool, HandlerError> {
    if cx.object()?.is_none() {
        return Ok(false);
    }
    // Without a resource version: only the ring keeps another replica from writing.
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
