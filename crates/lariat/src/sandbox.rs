//! A namespace to try things in.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::{env, fmt, io};

use kube::api::{Api, DeleteParams, DynamicObject};
use kube::{Client, Error};

use crate::cache::ConnectError;
use crate::cluster::testing::{namespace, object};
use crate::cluster::{Cluster, Workloads};
use crate::{ControllerOptions, KindOptions, Selection, from_kubeconfig};

/// A new namespace on the cluster of `KUBECONFIG`, or on an embedded one.
///
/// Examples and tests that use it need no cluster, and run on a genuine one if the environment variable is set. It is
/// not for programs: those [connect](crate::connect) to the cluster that runs them.
///
/// The embedded cluster simulates nodes and workloads, so pods run. It ends with the sandbox.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use lariat::SharedControllerFactory;
/// use lariat::cluster::{Sandbox, testing::config_map};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::open().await?;
/// let factory = SharedControllerFactory::builder(sandbox.client())
///     .default_options(sandbox.options())
///     .build();
/// let colours = config_map("colours", &[("sky", "blue")]).namespace(sandbox.namespace());
/// colours.create(&sandbox.client()).await?;
/// let cache = factory.for_object::<ConfigMap>().cache();
/// factory.start(1).await?;
/// assert!(cache.list().any(|map| map.is_ok_and(|map| map.metadata.name.as_deref() == Some("colours"))));
/// factory.stop().await?;
/// sandbox.close().await?;
/// # Ok(()) }
/// ```
#[must_use = "a namespace on a genuine cluster stays until the sandbox is closed"]
pub struct Sandbox {
    client: Client,
    namespace: String,
    /// `None` on the cluster of `KUBECONFIG`.
    embedded: Option<Cluster>,
}

/// A sandbox could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The kubeconfig cannot be used, as with [`from_kubeconfig`].
    #[error("the cluster of KUBECONFIG cannot be used; unset it to use the embedded cluster")]
    Connect(#[from] ConnectError),
    /// The embedded cluster does not start.
    #[error("the embedded cluster does not start")]
    Start(#[from] io::Error),
    /// The cluster does not answer, or refuses the namespace.
    #[error("the namespace cannot be created")]
    Create(#[from] Error),
}

impl Sandbox {
    /// Creates a namespace, on a new embedded cluster unless `KUBECONFIG` is set.
    ///
    /// An empty variable counts as unset. Pods can be created in the namespace at once.
    ///
    /// # Errors
    ///
    /// The kubeconfig cannot be used, or the cluster refuses the namespace.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the namespace may have been created.
    pub async fn open() -> Result<Self, SandboxError> {
        let name = format!("lariat-{:08x}", random());
        let given = env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty());
        let (client, embedded) = match given {
            Some(paths) => (in_namespace(from_kubeconfig(paths).await?, &name), None),
            None => {
                let cluster = Cluster::builder().simulate_workloads(Workloads::default());
                let cluster = cluster.start().await?;
                (Client::new(cluster.service(), &*name), Some(cluster))
            }
        };
        namespace(&name).create(&client).await?;
        // A genuine cluster refuses pods until a controller has created this account.
        let account = object("v1", "ServiceAccount", "default").namespace(&name);
        match account.create(&client).await {
            Err(Error::Api(status)) if status.code == 409 => {}
            created => drop(created?),
        }
        Ok(Self {
            client,
            namespace: name,
            embedded,
        })
    }

    /// Returns a client whose default namespace is the sandbox's.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the name of the namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the embedded cluster; `None` on the cluster of `KUBECONFIG`.
    #[must_use]
    pub fn embedded(&self) -> Option<&Cluster> {
        self.embedded.as_ref()
    }

    /// Returns options of a kind that cache the objects of the sandbox alone.
    ///
    /// Cluster-scoped kinds are cached completely.
    pub fn options(&self) -> ControllerOptions {
        let selection = Selection::all().in_namespaces([&self.namespace]);
        ControllerOptions::default().cache(KindOptions::default().selection(selection))
    }

    /// Deletes the namespace, and stops the embedded cluster.
    ///
    /// A genuine cluster deletes the objects in the namespace after this returns. Without a call the namespace stays
    /// there. Cluster-scoped objects stay in either case.
    ///
    /// # Errors
    ///
    /// The cluster refuses.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the namespace may stay.
    pub async fn close(self) -> Result<(), Error> {
        if let Some(cluster) = self.embedded {
            cluster.shutdown().await;
            return Ok(());
        }
        let namespaces: Api<DynamicObject> = namespace(&self.namespace).api(&self.client);
        let params = DeleteParams::default();
        let deleted = namespaces.delete(&self.namespace, &params).await;
        deleted.map(drop)
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("namespace", &self.namespace)
            .field("embedded", &self.embedded)
            .finish_non_exhaustive()
    }
}

/// Returns a client with another default namespace.
fn in_namespace(client: Client, namespace: &str) -> Client {
    let send = move |request| {
        let client = client.clone();
        async move { client.send(request).await }
    };
    Client::new(tower::service_fn(send), namespace)
}

/// Returns a random number: the keys of std's hash maps are random.
fn random() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::{pod, wait_for_condition};

    /// It runs on the cluster of `KUBECONFIG`, too, where pods may not run.
    #[tokio::test]
    async fn each_sandbox_has_a_namespace_of_its_own_in_which_pods_can_be_created() {
        let (one, other) = tokio::try_join!(Sandbox::open(), Sandbox::open()).unwrap();
        assert_ne!(one.namespace(), other.namespace());
        let web = pod("web").namespace(one.namespace());
        web.create(&one.client()).await.unwrap();
        let pods: Api<DynamicObject> = web.api(&one.client());
        assert_eq!(one.client().default_namespace(), one.namespace());
        if one.embedded().is_some() {
            wait_for_condition(&pods, "web", "Ready").await.unwrap();
        }
        one.close().await.unwrap();
        other.close().await.unwrap();
    }
}
