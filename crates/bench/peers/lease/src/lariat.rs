//! `lariat-lease`, with its defaults: 15 s, a renew deadline of 10 s, a retry period of 2 s.

use std::sync::Arc;

use anyhow::Result;
use kube::{Client, Config};
use lariat_lease::{Elector, Lease};

use crate::{NAMESPACE, Replica, terminated, user_agent};

pub(crate) async fn run(replica: Replica) -> Result<()> {
    let mut config = Config::infer().await?;
    config.headers = user_agent(&replica.name)?;
    let lease = Lease::new(&replica.lease);
    let lease = lease.namespace(NAMESPACE).identity(&replica.name);
    let elector = Elector::new(Client::try_from(config)?, lease)?;
    let leadership = elector.leadership();
    let writer = leadership.fence(replica.writer.clone());
    replica.observe(Arc::new(move || leadership.leads()), writer);
    let stop = async {
        let _ = terminated().await;
    };
    Ok(elector.run(stop).await?)
}
