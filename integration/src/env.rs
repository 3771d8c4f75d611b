//! A cluster to test on.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::FutureExt;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::cluster::{Cluster, Workloads};
use lariat::kube::api::{Api, DeleteParams, PostParams};
use lariat::kube::client::ClientBuilder;
use lariat::kube::config::{KubeConfigOptions, Kubeconfig};
use lariat::kube::{Client, Config, Error};
use lariat::{FactoryBuilder, Gvk, SharedControllerFactory};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{Kubectl, Wire};

/// How long something may take that must happen.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A cluster, and a namespace of the test's own in it.
pub struct Env {
    /// The namespace.
    pub namespace: String,
    /// Counts and cuts what goes through the factory's client.
    pub wire: Wire,
    /// A client of the test's own, which the wire does not see.
    pub client: Client,
    config: Config,
    definitions: Mutex<Vec<String>>,
    embedded: Option<Cluster>,
}

impl Env {
    async fn new(name: &str) -> Result<Self> {
        let given = std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty());
        let (config, embedded) = match given {
            Some(_) => (Config::infer().await.context("KUBECONFIG")?, None),
            None => {
                // A real one runs what it is given too.
                let cluster = Cluster::builder().simulate_workloads(Workloads::default());
                let cluster = cluster.listen().start().await?;
                let kubeconfig = cluster.kubeconfig().context("the cluster listens")?;
                let kubeconfig = Kubeconfig::from_yaml(&kubeconfig)?;
                let options = KubeConfigOptions::default();
                let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
                (config, Some(cluster))
            }
        };
        Ok(Self {
            namespace: format!("lariat-{name}-{}", fastrand::u32(..)),
            wire: Wire::default(),
            client: Client::try_from(config.clone())?,
            config,
            definitions: Mutex::default(),
            embedded,
        })
    }

    /// Returns whether the cluster is the embedded one.
    #[must_use]
    pub fn is_embedded(&self) -> bool {
        self.embedded.is_some()
    }

    /// Returns kubectl for the cluster and the test's namespace.
    ///
    /// # Errors
    ///
    /// It is not installed.
    pub fn kubectl(&self) -> Result<Kubectl> {
        let kubeconfig = self.embedded.as_ref().and_then(Cluster::kubeconfig);
        Kubectl::new(kubeconfig.as_deref(), &self.namespace)
    }

    /// Returns the kubeconfig of the cluster, for other processes.
    ///
    /// # Errors
    ///
    /// That of `KUBECONFIG` cannot be read.
    pub fn kubeconfig(&self) -> Result<Kubeconfig> {
        match &self.embedded {
            Some(cluster) => {
                let text = cluster.kubeconfig().context("the cluster listens")?;
                Ok(Kubeconfig::from_yaml(&text)?)
            }
            None => Kubeconfig::from_env()?.context("KUBECONFIG"),
        }
    }

    /// Begins a factory whose client goes through the wire.
    ///
    /// # Panics
    ///
    /// If the configuration, which made one client already, makes no other.
    pub fn factory(&self) -> FactoryBuilder {
        let mut config = self.config.clone();
        config.default_retry = false;
        let client = ClientBuilder::try_from(config).expect("it made a client before");
        SharedControllerFactory::builder(client.with_layer(&self.wire.layer()).build())
    }

    /// Returns kube's `Api` for the test's namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: lariat::kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Defines a custom kind in a group of the test's own, and waits until it is established.
    ///
    /// # Errors
    ///
    /// The cluster refuses it.
    pub async fn define(&self, kind: &str) -> Result<Gvk> {
        let group = self.group();
        let plural = format!("{}s", kind.to_lowercase());
        let name = format!("{plural}.{group}");
        let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition: CustomResourceDefinition = serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }],
            },
        }))?;
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        api.create(&PostParams::default(), &definition).await?;
        self.definitions.lock().push(name.clone());
        eventually(async || {
            let definition = api.get(&name).await?;
            let conditions = definition.status.and_then(|status| status.conditions);
            let mut conditions = conditions.into_iter().flatten();
            let established = conditions.any(|c| c.type_ == "Established" && c.status == "True");
            established
                .then_some(())
                .context("the CRD is not established")
        })
        .await;
        Ok(Gvk::new(&group, "v1", kind))
    }

    /// Takes a CRD away at the end of the test, which a program has made.
    pub fn takes_away(&self, definition: &str) {
        self.definitions.lock().push(definition.to_owned());
    }

    /// Returns the API group of the test's own kinds.
    #[must_use]
    pub fn group(&self) -> String {
        format!("{}.demo.dev", self.namespace)
    }

    async fn make_namespace(&self) -> Result<()> {
        let namespace = serde_json::from_value(json!({"metadata": {"name": self.namespace}}))?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces
            .create(&PostParams::default(), &namespace)
            .await?;
        // A real cluster refuses pods until its controllers have made this account.
        let account = serde_json::from_value(json!({"metadata": {"name": "default"}}))?;
        match self
            .api::<ServiceAccount>()
            .create(&PostParams::default(), &account)
            .await
        {
            Err(Error::Api(status)) if status.code == 409 => Ok(()),
            other => other
                .map(drop)
                .context("the service account of the namespace"),
        }
    }

    async fn clean_up(&self) -> Result<()> {
        let options = DeleteParams::default();
        let definitions = std::mem::take(&mut *self.definitions.lock());
        for name in definitions {
            Api::<CustomResourceDefinition>::all(self.client.clone())
                .delete(&name, &options)
                .await?;
        }
        Api::<Namespace>::all(self.client.clone())
            .delete(&self.namespace, &options)
            .await?;
        Ok(())
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// Runs a test in a namespace of its own, which is deleted afterwards, also when the test fails.
///
/// # Panics
///
/// If the test does, or the cluster cannot be used.
pub async fn in_namespace(name: &str, test: impl AsyncFnOnce(&Env) -> Result<()>) {
    let env = Env::new(name).await.expect("there is a cluster to test on");
    env.make_namespace()
        .await
        .expect("the namespace of the test can be made");
    let outcome = AssertUnwindSafe(test(&env)).catch_unwind().await;
    let cleaned = env.clean_up().await;
    match outcome {
        Err(panic) => std::panic::resume_unwind(panic),
        Ok(outcome) => outcome.expect("the test went through"),
    }
    cleaned.expect("what the test made can be deleted");
    if let Some(cluster) = env.embedded {
        cluster.shutdown().await;
    }
}

/// Waits until something holds, and returns it.
///
/// # Panics
///
/// If it does not hold for two minutes; with what was seen last.
pub async fn eventually<T>(mut look: impl AsyncFnMut() -> Result<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(last) if Instant::now() > deadline => panic!("after {TIMEOUT:?} still: {last:#}"),
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}
