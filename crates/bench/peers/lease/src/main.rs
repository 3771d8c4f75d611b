//! A replica that takes part in an election, as docs/benchmarks.md measures it: `lariat-bench-lease SUBJECT NAME`.
//!
//! It prints `leads SECONDS` (`CLOCK_MONOTONIC`) every 20 ms as long as it takes itself for the leader, by what the
//! crate of the subject says. With `WRITE=1` it also writes a ConfigMap every 200 ms as long as it does. It ends when
//! its election does, and gives the lease up at SIGTERM. The cluster is that of `KUBECONFIG`; `LEASE` names the lease.

mod kube_leader_election;
mod kube_lease_manager;
mod kubert;
mod lariat;

use std::io::{self, Write as _};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Config};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

/// How often it says that it leads.
const SAMPLE: Duration = Duration::from_millis(20);

/// How long it waits between writes, and for the answer to one.
const WRITE: Duration = Duration::from_millis(200);
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// The lease duration of all subjects, in seconds.
const LEASE_SECONDS: u64 = 15;

const NAMESPACE: &str = "default";

/// Whether this process takes itself for the leader at this moment.
type Leads = Arc<dyn Fn() -> bool + Send + Sync>;

/// What a subject needs.
struct Replica {
    lease: String,
    name: String,
    /// A client for what the replica writes while it leads.
    writer: Client,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [subject, name] = &arguments[..] else {
        bail!("usage: lariat-bench-lease SUBJECT NAME");
    };
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let mut config = Config::infer().await?;
    config.headers = user_agent(&format!("{name}-writes"))?;
    let replica = Replica {
        lease: std::env::var("LEASE")?,
        name: name.clone(),
        writer: Client::try_from(config)?,
    };
    match subject.as_str() {
        "lariat" => lariat::run(replica).await,
        "kube-lease-manager" => kube_lease_manager::run(replica).await,
        "kube-leader-election" => kube_leader_election::run(replica).await,
        "kubert" => kubert::run(replica).await,
        _ => bail!("there is no subject {subject}"),
    }
}

impl Replica {
    /// Begins to say when it leads, and to write while it does.
    ///
    /// The samples are taken by a thread of their own, which waits for no runtime.
    fn observe(&self, leads: Leads, writer: Client) {
        if std::env::var_os("WRITE").is_some() {
            let (lease, name) = (self.lease.clone(), self.name.clone());
            tokio::spawn(write(Arc::clone(&leads), writer, lease, name));
        }
        thread::spawn(move || {
            loop {
                let now = clock_gettime(ClockId::Monotonic);
                if leads() {
                    let line = format!("leads {}.{:09}\n", now.tv_sec, now.tv_nsec);
                    let _ = io::stdout().write_all(line.as_bytes());
                }
                thread::sleep(SAMPLE);
            }
        });
    }
}

/// Writes without a resource version, so that only the lease stops a former leader.
async fn write(leads: Leads, client: Client, lease: String, name: String) {
    let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    let params = PatchParams::default();
    for count in 0_u64.. {
        tokio::time::sleep(WRITE).await;
        if leads() {
            let patch = Patch::Merge(json!({"data": {"by": name, "count": count.to_string()}}));
            let written = maps.patch(&lease, &params, &patch);
            let _ = tokio::time::timeout(WRITE_TIMEOUT, written).await;
        }
    }
}

fn user_agent(name: &str) -> Result<Vec<(http::HeaderName, http::HeaderValue)>> {
    Ok(vec![(http::header::USER_AGENT, name.parse()?)])
}

async fn terminated() -> Result<()> {
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}
