//! `kube-leader-election`, as its example `shared-lease` uses it: a try every 5 s, whose success is kept in a flag.
//!
//! An error leaves the flag as it was, as in the example.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::kube_leader_election::{LeaseLock, LeaseLockParams, LeaseLockResult};
use anyhow::Result;
use kube4::{Client, Config};

use crate::{LEASE_SECONDS, NAMESPACE, Replica, terminated, user_agent};

const PERIOD: Duration = Duration::from_secs(5);

pub(crate) async fn run(replica: Replica) -> Result<()> {
    let mut config = Config::infer().await?;
    config.headers = user_agent(&replica.name)?;
    let params = LeaseLockParams {
        holder_id: replica.name.clone(),
        lease_name: replica.lease.clone(),
        lease_ttl: Duration::from_secs(LEASE_SECONDS),
    };
    let lock = LeaseLock::new(Client::try_from(config)?, NAMESPACE, params);
    let leads = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&leads);
    let seen = move || seen.load(Ordering::Relaxed);
    replica.observe(Arc::new(seen), replica.writer.clone());
    let election = async {
        loop {
            match lock.try_acquire_or_renew().await {
                Ok(result) => {
                    let acquired = matches!(result, LeaseLockResult::Acquired(_));
                    leads.store(acquired, Ordering::Relaxed);
                }
                Err(error) => eprintln!("{error}"),
            }
            tokio::time::sleep(PERIOD).await;
        }
    };
    tokio::select! {
        () = election => {}
        _ = terminated() => {}
    }
    leads.store(false, Ordering::Relaxed);
    Ok(lock.step_down().await?)
}
