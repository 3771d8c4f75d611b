//! The process of one replica.

use anyhow::{Context, Result};

use super::{factory, lease};
use crate::{Replica, say};

/// Runs one replica until it is stopped, or until it has lost the lease.
///
/// # Errors
///
/// It does not start, or has lost the lease.
pub async fn run(replica: Replica) -> Result<()> {
    let options = &replica.options;
    let duration = options.seconds("lease-s")?;
    let lease = lease(&replica.namespace, &replica.name, duration);
    let period = options.seconds("period-s")?;
    let log = |count| say(format_args!("counts to {count}"));
    let client = replica.client.clone();
    let factory = factory(client, &replica.namespace, lease, period, log)?;
    let leadership = factory.leadership().context("it takes part")?;
    factory.start(1).await?;
    say("stands by");
    let leads = async {
        if leadership.acquired().await {
            say("leads");
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = factory.run_until(replica.stopped()) => Ok(ended?),
        () = leads => Ok(()),
    }
}
