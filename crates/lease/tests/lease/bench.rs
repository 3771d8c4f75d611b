//! Replicas of a program on the embedded cluster, each with a client of its own name.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request};
use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::client::Body;
use lariat_cluster::Cluster;
use lariat_cluster::testing::TestCluster;
use lariat_lease::{Elector, Leadership, Lease, LeaseError};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) struct Bench {
    pub(crate) cluster: TestCluster,
}

/// A process that takes part in the election; dropping it kills it.
pub(crate) struct Replica {
    pub(crate) name: &'static str,
    pub(crate) leadership: Leadership,
    stop: CancellationToken,
    run: JoinSet<Result<(), LeaseError>>,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self {
            cluster: Cluster::for_test().await,
        }
    }

    /// Makes a client that says its name to the server.
    pub(crate) fn client(&self, name: &'static str) -> Client {
        let agent = move |mut request: Request<Body>| {
            let headers = request.headers_mut();
            headers.insert("user-agent", HeaderValue::from_static(name));
            request
        };
        Client::new(self.cluster.service().map_request(agent), "default")
    }

    pub(crate) fn replica(&self, name: &'static str) -> Replica {
        self.replica_with(name, |lease| lease)
    }

    pub(crate) fn replica_with(
        &self,
        name: &'static str,
        configure: impl FnOnce(Lease) -> Lease,
    ) -> Replica {
        let lease = configure(Lease::new("shop").identity(name));
        let elector = Elector::new(self.client(name), lease).expect("it is valid");
        let elector = Arc::new(elector);
        let (leadership, stop) = (elector.leadership(), CancellationToken::new());
        let stopped = stop.clone().cancelled_owned();
        let mut run = JoinSet::new();
        run.spawn(async move { elector.run(stopped).await });
        Replica {
            name,
            leadership,
            stop,
            run,
        }
    }

    /// Starts a replica and waits until it leads.
    pub(crate) async fn led_by(&self, name: &'static str) -> Replica {
        let replica = self.replica(name);
        assert!(replica.leadership.acquired().await);
        replica
    }

    pub(crate) fn leases(&self) -> Api<Object> {
        Api::namespaced(self.client("test"), "default")
    }

    pub(crate) async fn lease(&self) -> Value {
        let lease = self.leases().get("shop").await.expect("there is a lease");
        serde_json::to_value(lease).expect("it is JSON")
    }

    pub(crate) async fn holder(&self) -> String {
        let lease = self.lease().await;
        lease["spec"]["holderIdentity"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub(crate) async fn patch(&self, patch: Value) {
        let params = PatchParams::default();
        let patched = self
            .leases()
            .patch("shop", &params, &Patch::Merge(patch))
            .await;
        patched.expect("it is patched");
    }

    pub(crate) async fn delete(&self) {
        let deleted = self.leases().delete("shop", &DeleteParams::default()).await;
        deleted.expect("it is deleted");
    }
}

impl Replica {
    pub(crate) fn leads(&self) -> bool {
        self.leadership.leads()
    }

    /// Stops it as SIGTERM does, and returns how it ended.
    pub(crate) async fn stop(&mut self) -> Result<(), LeaseError> {
        self.stop.cancel();
        self.ended().await
    }

    pub(crate) async fn ended(&mut self) -> Result<(), LeaseError> {
        let ended = self.run.join_next().await.expect("it ends once");
        ended.expect("it does not panic")
    }
}
