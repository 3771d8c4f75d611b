//! kubert's `LeaseManager`, as its `Runtime::spawn_lease` uses it.
//!
//! The lease lasts 15 s in place of the default of 30; the renew grace period is the default of 1 s. kubert creates no
//! lease, so this program does if there is none. A process leads if the claim it saw last is its own and is current.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::kubert::lease::{ClaimParams, LeaseManager};
use anyhow::Result;
use k8s_openapi25::api::coordination::v1::Lease;
use kube1::api::{Api, ObjectMeta, PostParams};
use kube1::{Client, Config};

use crate::{LEASE_SECONDS, NAMESPACE, Replica, terminated, user_agent};

pub(crate) async fn run(replica: Replica) -> Result<()> {
    let mut config = Config::infer().await?;
    config.headers = user_agent(&replica.name)?;
    let api: Api<Lease> = Api::namespaced(Client::try_from(config)?, NAMESPACE);
    create(&api, &replica.lease).await?;
    let manager = LeaseManager::init(api, &replica.lease).await?;
    let params = ClaimParams {
        lease_duration: Duration::from_secs(LEASE_SECONDS),
        ..ClaimParams::default()
    };
    let (claim, mut task) = manager.spawn(&replica.name, params).await?;
    // The manager vacates the lease when the last receiver is dropped.
    let receiver = Arc::new(Mutex::new(Some(claim)));
    let (seen, name) = (Arc::clone(&receiver), replica.name.clone());
    let leads = move || {
        let receiver = seen.lock().expect("nothing panics with it");
        let claim = receiver.as_ref().map(|claim| Arc::clone(&claim.borrow()));
        claim.is_some_and(|claim| claim.is_current_for(&name))
    };
    replica.observe(Arc::new(leads), replica.writer.clone());
    tokio::select! {
        ended = &mut task => ended??,
        _ = terminated() => {
            drop(receiver.lock().expect("nothing panics with it").take());
            task.await??;
        }
    }
    Ok(())
}

async fn create(api: &Api<Lease>, name: &str) -> Result<()> {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    let lease = Lease {
        metadata,
        spec: Some(Default::default()),
    };
    match api.create(&PostParams::default(), &lease).await {
        Err(kube1::Error::Api(error)) if error.code == 409 => Ok(()),
        created => Ok(created.map(drop)?),
    }
}
