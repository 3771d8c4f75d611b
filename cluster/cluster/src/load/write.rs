//! Writes a load into the store, past the API.

use std::sync::Arc;

use lariat_apimachinery::kinds::Catalog;
use serde_json::Value;

use super::config_map::{config_map, namespace};
use super::node::node;
use super::options::{Load, REPLICAS};
use super::plan::{App, Instance};
use super::{pod, workload};
use crate::cluster::Cluster;
use crate::server::Server;
use crate::store::{Draft, Write};

/// The number of objects that are written before other tasks get their turn.
const TURN: usize = 128;

/// The numbers of objects that a [`Load`] has created and skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loaded {
    created: usize,
    skipped: usize,
}

impl Loaded {
    /// Returns the number of objects that were created, of all kinds.
    #[must_use]
    pub fn created(&self) -> usize {
        self.created
    }

    /// Returns the number of objects that were left out.
    ///
    /// Their names were taken, or their namespaces are being deleted.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skipped
    }
}

impl Cluster {
    /// Fills the cluster with objects, past its API: tens of thousands a second.
    ///
    /// They get revisions and watch events as all objects do, in one order: namespaces, nodes, then each
    /// Deployment with its ReplicaSet and its pods, then ConfigMaps. Objects whose names are taken already are
    /// left as they are, so that loading twice is loading once. Other tasks get their turn in between.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves what was written so far; loading the same again writes the rest.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::{Cluster, Load};
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// let first = cluster.load(Load::pods(16)).await;
    /// let second = cluster.load(Load::pods(16)).await;
    /// assert_eq!(second.created(), 0, "all names are taken");
    /// assert_eq!(second.skipped(), first.created());
    /// # Ok(()) }
    /// ```
    pub async fn load(&self, load: Load) -> Loaded {
        load_into(&self.server, &load).await
    }
}

async fn load_into(server: &Server, load: &Load) -> Loaded {
    let mut writer = Writer {
        server,
        catalog: server.kinds.catalog(),
        loaded: Loaded::default(),
    };
    for number in 0..load.namespace_count() {
        let object = namespace(load, number);
        writer.write("", "namespaces", &object).await;
    }
    for number in 0..load.node_count() {
        writer.write("", "nodes", &node(load, number)).await;
    }
    for (number, app) in App::all(load).enumerate() {
        let deployment = workload::deployment(&app);
        writer.write("apps", "deployments", &deployment).await;
        let replica_set = workload::replica_set(&app);
        writer.write("apps", "replicasets", &replica_set).await;
        // Encoded once for each Deployment, whose pods differ in the placeholders only.
        let pods = Writer::draft(&pod::pod(&app, &Instance::placeholders()));
        for replica in 0..app.replicas {
            let instance = app.instance(load, number * REPLICAS + replica);
            let pod = pods.fill(&instance.values());
            writer.commit("", "pods", pod).await;
        }
    }
    for number in 0..load.config_maps {
        let object = config_map(load, number);
        writer.write("", "configmaps", &object).await;
    }
    writer.loaded
}

struct Writer<'a> {
    server: &'a Server,
    catalog: Arc<Catalog>,
    loaded: Loaded,
}

impl Writer<'_> {
    async fn write(&mut self, group: &str, plural: &str, object: &Value) {
        let draft = Self::draft(object);
        self.commit(group, plural, draft).await;
    }

    fn draft(object: &Value) -> Draft {
        Draft::new(object.as_object().expect("objects of a load are objects"))
    }

    async fn commit(&mut self, group: &str, plural: &str, draft: Draft) {
        let known = self.catalog.resource(group, "v1", plural);
        let resource = known.expect("the kinds of a load are built in");
        let key = draft.key().clone();
        let mut write = Write::new(resource.table, &key, None, Some(draft));
        write.namespaces = Some(self.server.kinds.namespaces);
        match self.server.store.commit(write) {
            Ok(_) => self.loaded.created += 1,
            // There is such an object already, or its namespace is being deleted.
            Err(_) => self.loaded.skipped += 1,
        }
        if (self.loaded.created + self.loaded.skipped).is_multiple_of(TURN) {
            tokio::task::yield_now().await;
        }
    }
}
