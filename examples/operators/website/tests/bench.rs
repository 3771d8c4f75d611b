//! An operator with its webhooks, on a cluster that calls them.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use lariat::cluster::testing::{TestCluster, eventually, secret, wait_for};
use lariat::cluster::{Cluster, Workloads};
use lariat::kube::api::{Api, ListParams, PostParams};
use lariat::kube::core::Status;
use lariat::kube::{Client, Error};
use lariat::operator::{CrdOptions, ensure_crds};
use lariat::webhook::{Certificates, Endpoint, WebhookMetrics, WebhookServer, Webhooks};
use lariat::{Lease, ObjectKey, Operator, SharedControllerFactory};

use super::super::kind::v1::{SecretReference, Website, WebsiteSpec};
use super::super::kind::{INDEX, definition, v1, v1alpha1};
use super::super::{READY, register, until_called, webhooks};
use crate::TIMEOUT;

pub(super) const NAME: &str = "websites.demo.dev";

pub(super) struct Bench {
    pub(super) cluster: TestCluster,
    pub(super) operator: Operator,
    pub(super) server: WebhookServer,
    pub(super) metrics: WebhookMetrics,
    pub(super) sites: Api<v1::Website>,
    pub(super) old_sites: Api<v1alpha1::Website>,
}

impl Bench {
    /// Starts the operator on a cluster on which pods run.
    pub(super) async fn new() -> Self {
        let builder = Cluster::builder().simulate_workloads(Workloads::default());
        let cluster = builder.for_test().await;
        let operator = operator(cluster.client(), None);
        Self::with(cluster, operator).await
    }

    pub(super) async fn with(cluster: TestCluster, operator: Operator) -> Self {
        Self::granted(cluster, operator, async |_, _| {}).await
    }

    /// Starts an operator that is granted what it declares.
    pub(super) async fn granted(
        cluster: TestCluster,
        operator: Operator,
        grant: impl AsyncFnOnce(&Cluster, &Operator),
    ) -> Self {
        let client = cluster.client();
        define(&client).await;
        register(&operator).expect("registered");
        let (webhooks, certificates) = declared(&operator);
        grant(&cluster, &operator).await;
        let (server, metrics) = served(webhooks, certificates).await;
        operator.start(2).await.expect("started");
        let bench = Self {
            sites: Api::default_namespaced(client.clone()),
            old_sites: Api::default_namespaced(client),
            cluster,
            operator,
            server,
            metrics,
        };
        until_called(&bench.old_sites).await.expect("called");
        bench
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: lariat::kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::default_namespaced(self.cluster.client())
    }

    pub(super) async fn create(&self, site: &Website) -> Website {
        let created = self.sites.create(&PostParams::default(), site).await;
        created.expect("created")
    }

    /// Returns why a Website is refused.
    pub(super) async fn refused(&self, site: &Website) -> Status {
        refusal(self.sites.create(&PostParams::default(), site).await)
    }

    /// Waits until a Website is ready in its present generation.
    pub(super) async fn ready(&self, name: &str) -> Website {
        let ready = wait_for(&self.sites, name, |site| is_ready(site, "True")).await;
        ready.expect("it is ready")
    }

    /// Waits until a Website is not ready, for a reason.
    pub(super) async fn unready(&self, name: &str, reason: &str) -> Website {
        let is_it = |site: &Website| {
            is_ready(site, "False") && condition(site).is_some_and(|ready| ready.reason == reason)
        };
        wait_for(&self.sites, name, is_it).await.expect(reason)
    }

    /// Creates a Secret in which one entry has a value.
    pub(super) async fn create_secret(&self, name: &str, value: &str) {
        let secret = secret(name, &[("GREETING", value)]);
        let created = secret.create(&self.cluster.client()).await;
        created.expect("created");
    }

    /// Waits until a Deployment has another checksum of its Secret, and returns the new one.
    pub(super) async fn next_checksum(&self, name: &str, last: Option<&str>) -> String {
        let deployments = self.api::<Deployment>();
        let is_new = |deployment: &Deployment| {
            let checksum = checksum(deployment);
            checksum.is_some() && checksum.as_deref() != last
        };
        let found = wait_for(&deployments, name, is_new).await;
        checksum(&found.expect("it changes")).expect("it has one")
    }

    /// Returns which of the objects of a Website exist: pages, pods, address.
    pub(super) async fn objects(&self, name: &str) -> [bool; 3] {
        let pages = self.api::<ConfigMap>().get_opt(name).await;
        let pods = self.api::<Deployment>().get_opt(name).await;
        let address = self.api::<Service>().get_opt(name).await;
        [
            pages.expect("read").is_some(),
            pods.expect("read").is_some(),
            address.expect("read").is_some(),
        ]
    }

    /// Waits until an Event about a Website has a reason.
    pub(super) async fn event(&self, reason: &str) {
        let events = self.api::<k8s_openapi::api::core::v1::Event>();
        let look = async || {
            let listed = events.list(&ListParams::default()).await;
            let listed = listed.map_err(|error| error.to_string())?;
            let reasons = listed.items.into_iter().filter_map(|event| {
                let kind = event.involved_object.kind.as_deref();
                event.reason.filter(|_| kind == Some("Website"))
            });
            let reasons: Vec<String> = reasons.collect();
            let is_there = reasons.iter().any(|each| each == reason);
            is_there.then_some(()).ok_or(format!("{reasons:?}"))
        };
        eventually(TIMEOUT, look).await.expect(reason);
    }

    /// Waits until the caches of the operator have a Secret, so that webhooks see it.
    pub(super) async fn until_cached<K>(&self, name: &str)
    where
        K: lariat::kube::Resource<DynamicType = ()> + lariat::cache::View,
        K::Scope: 'static,
    {
        let key = ObjectKey::namespaced("default", name);
        let cache = self.operator.factory().for_object::<K>().cache();
        let look = async || match cache.get(&key) {
            Ok(Some(_)) => Ok(()),
            _ => Err("it is not cached"),
        };
        eventually(TIMEOUT, look).await.expect("cached");
    }
}

/// Creates the operator of a replica; with an identity it takes part in an election.
pub(super) fn operator(client: Client, identity: Option<&str>) -> Operator {
    let mut builder = SharedControllerFactory::builder(client);
    if let Some(identity) = identity {
        let lease = Lease::new("website")
            .namespace("default")
            .identity(identity);
        builder = builder.leader_election(lease);
    }
    Operator::new("website", &builder.build())
}

async fn define(client: &Client) {
    let definition = definition().expect("the versions fit");
    let options = CrdOptions::default();
    let ensured = ensure_crds(client, &[definition], &options).await;
    ensured.expect("the kind is served");
}

/// Serves the webhooks of an operator.
pub(super) async fn serve(operator: &Operator) -> (WebhookServer, WebhookMetrics) {
    let (webhooks, certificates) = declared(operator);
    served(webhooks, certificates).await
}

fn declared(operator: &Operator) -> (Webhooks, Certificates) {
    let secret = ObjectKey::namespaced("default", "website-webhooks");
    let certificates = Certificates::secret(&secret);
    let webhooks = webhooks(NAME, operator.factory(), None)
        .endpoint(Endpoint::local())
        .declare(operator, &certificates);
    (webhooks, certificates)
}

async fn served(webhooks: Webhooks, certificates: Certificates) -> (WebhookServer, WebhookMetrics) {
    let metrics = webhooks.metrics();
    let server = webhooks.serve("127.0.0.1:0", certificates).await;
    let server = server.expect("served");
    assert!(server.applied().await, "it has stopped");
    (server, metrics)
}

/// Returns a Website with one page.
pub(super) fn site(name: &str) -> Website {
    let spec = WebsiteSpec {
        host: None,
        pages: [(INDEX.to_owned(), "hello".to_owned())].into(),
        replicas: 1,
        image: "nginx:1.29-alpine".to_owned(),
        secret_ref: None,
    };
    Website::new(name, spec)
}

pub(super) fn site_with_secret(name: &str, secret: &str) -> Website {
    let mut site = site(name);
    let name = secret.to_owned();
    site.spec.secret_ref = Some(SecretReference { name });
    site
}

pub(super) fn refusal<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Status {
    match outcome {
        Err(Error::Api(status)) => *status,
        other => panic!("it is not refused: {other:?}"),
    }
}

type Condition = k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

pub(super) fn condition(site: &Website) -> Option<&Condition> {
    let mut conditions = site.status.as_ref()?.conditions.iter();
    conditions.find(|condition| condition.type_ == READY)
}

fn is_ready(site: &Website, status: &str) -> bool {
    condition(site).is_some_and(|ready| {
        ready.status == status && ready.observed_generation == site.metadata.generation
    })
}

fn checksum(deployment: &Deployment) -> Option<String> {
    let template = deployment.spec.as_ref()?.template.metadata.as_ref()?;
    let annotations = template.annotations.as_ref()?;
    annotations.get(super::super::objects::CHECKSUM).cloned()
}
