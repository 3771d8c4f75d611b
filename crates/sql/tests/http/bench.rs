//! A cluster, the cache of its ConfigMaps and Namespaces, and a service of it.

use std::net::SocketAddr;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cache::SharedCacheFactory;
use lariat_cluster::{Cluster, ClusterBuilder};
use lariat_core::Gvk;
use lariat_sql::http::SqlService;
use lariat_sql::{Association, Field, FieldType, Schema, SqlCache, SqlCacheBuilder};
use lariat_testing::http::Client;
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) const MAPS: &str = "/v1/core/v1/ConfigMap";

pub(crate) struct Bench {
    pub(crate) cluster: Cluster,
    pub(crate) sql: SqlCache,
    pub(crate) stopping: CancellationToken,
    factory: SharedCacheFactory,
    pub(crate) served: JoinSet<()>,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(|cluster| cluster, |sql| sql).await
    }

    pub(crate) async fn with(
        cluster: impl FnOnce(ClusterBuilder) -> ClusterBuilder,
        sql: impl FnOnce(SqlCacheBuilder) -> SqlCacheBuilder,
    ) -> Self {
        let cluster = cluster(Cluster::builder()).start().await;
        let cluster = cluster.expect("a cluster without a socket starts");
        let factory = SharedCacheFactory::new(cluster.client());
        let namespaces = Schema::new(Gvk::new("", "v1", "Namespace"), []).expect("a schema");
        let builder = SqlCache::builder(&factory).kind(maps()).kind(namespaces);
        let sql = sql(builder).start().await.expect("started");
        Self {
            cluster,
            sql,
            stopping: CancellationToken::new(),
            factory,
            served: JoinSet::new(),
        }
    }

    /// Starts the informers.
    pub(crate) fn fill(&self) {
        self.factory.start();
    }

    /// Serves on a free port.
    pub(crate) async fn serve(
        &mut self,
        configure: impl FnOnce(SqlService) -> SqlService,
    ) -> Client {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.expect("a free port");
        let address: SocketAddr = listener.local_addr().expect("an address");
        let service = SqlService::new(&self.sql).stop_with(self.stopping.clone());
        let service = configure(service);
        self.served.spawn(async move {
            service.serve_on(listener).await.expect("served");
        });
        Client::new(address)
    }

    /// Serves what is filled to everyone.
    pub(crate) async fn open(&mut self) -> Client {
        self.fill();
        self.serve(SqlService::open_to_everyone).await
    }

    fn maps(&self) -> Api<ConfigMap> {
        self.maps_in("default")
    }

    pub(crate) fn maps_in(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.client(), namespace)
    }

    /// Creates a ConfigMap, and returns its version.
    pub(crate) async fn create(&self, name: &str, data: Json) -> String {
        self.create_in("default", name, data).await
    }

    pub(crate) async fn create_in(&self, namespace: &str, name: &str, data: Json) -> String {
        let map = json!({"metadata": {"name": name}, "data": data});
        let map: ConfigMap = serde_json::from_value(map).expect("a ConfigMap");
        let maps = self.maps_in(namespace);
        let created = maps.create(&PostParams::default(), &map).await;
        let version = created.expect("created").metadata.resource_version;
        version.expect("a version")
    }

    pub(crate) async fn patch(&self, name: &str, patch: Json) -> String {
        let (maps, params) = (self.maps(), PatchParams::default());
        let patched = maps.patch(name, &params, &Patch::Merge(patch)).await;
        let version = patched.expect("patched").metadata.resource_version;
        version.expect("a version")
    }

    pub(crate) async fn delete(&self, name: &str) {
        let deleted = self.maps().delete(name, &DeleteParams::default()).await;
        deleted.expect("deleted");
    }
}

fn maps() -> Schema {
    let size = Field::path("data.size", FieldType::Integer).expect("a path");
    let color = Field::path("data.color", FieldType::Text).expect("a path");
    let color = color.searchable();
    let schema = Schema::new(Gvk::new("", "v1", "ConfigMap"), [size, color]).expect("a schema");
    let namespace = Gvk::new("", "v1", "Namespace");
    let namespace = Association::field("ns", namespace, "metadata.namespace", "metadata.name");
    schema.associate(namespace).expect("a schema")
}
