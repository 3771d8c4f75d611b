//! `kube-lease-manager`, as its documentation uses it: `watch`, whose channel says whether the process leads.
//!
//! The lease lasts 15 s in place of its default of 30; the grace is its default of 5 s.

use std::sync::Arc;

use ::kube_lease_manager::LeaseManagerBuilder;
use anyhow::Result;
use kube::{Client, Config};

use crate::{LEASE_SECONDS, NAMESPACE, Replica, terminated, user_agent};

pub(crate) async fn run(replica: Replica) -> Result<()> {
    let mut config = Config::infer().await?;
    config.headers = user_agent(&replica.name)?;
    let client = Client::try_from(config)?;
    let manager = LeaseManagerBuilder::new(client, &replica.lease)
        .with_namespace(NAMESPACE)
        .with_identity(&replica.name)
        .with_field_manager(format!("kube-lease-manager-{}", replica.name))
        .with_duration(LEASE_SECONDS)
        .build()
        .await?;
    let (leads, mut task) = manager.watch().await;
    // The manager releases the lease when the last receiver is dropped.
    let receiver = Arc::new(std::sync::Mutex::new(Some(leads)));
    let seen = Arc::clone(&receiver);
    let leads = move || {
        let receiver = seen.lock().expect("nothing panics with it");
        receiver.as_ref().is_some_and(|leads| *leads.borrow())
    };
    replica.observe(Arc::new(leads), replica.writer.clone());
    tokio::select! {
        ended = &mut task => {
            ended??;
        }
        _ = terminated() => {
            drop(receiver.lock().expect("nothing panics with it").take());
            task.await??;
        }
    }
    Ok(())
}
