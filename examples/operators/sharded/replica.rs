//! The process of one replica.

use std::convert::Infallible;

use anyhow::{Context, Result};
use lariat::SharedControllerFactory;

use super::{factory, lease, orders_of};
use crate::{Replica, say};

/// Runs one replica until it is stopped, or until it has lost its lease.
///
/// # Errors
///
/// It does not start, or has lost its lease.
pub async fn run(replica: Replica) -> Result<()> {
    let duration = replica.options.seconds("lease-s")?;
    let (namespace, name) = (&*replica.namespace, &*replica.name);
    let lease = lease(namespace, name, duration);
    let log = |order: &str| say(format_args!("handles {order}"));
    let factory = factory(replica.client.clone(), namespace, name, lease, log)?;
    factory.start(2).await?;
    tokio::select! {
        ended = factory.run_until(replica.stopped()) => Ok(ended?),
        never = print_shares(&factory) => match never? {},
    }
}

/// Prints each new share.
async fn print_shares(factory: &SharedControllerFactory) -> Result<Infallible> {
    let shards = factory.shards().context("it takes part")?;
    let mut shares = shards.follow();
    loop {
        let share = shares.borrow_and_update().clone();
        let orders = orders_of(factory, &share).join(" ");
        match share.members() {
            // It is joining, or has left.
            0 => {}
            members => say(format_args!("is one of {members}, and has: {orders}")),
        }
        shares.changed().await?;
    }
}
