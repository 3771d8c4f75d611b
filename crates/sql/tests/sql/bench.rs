//! A cluster, an informer of its ConfigMaps, and the cache of them.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cache::SharedCacheFactory;
use lariat_cluster::Cluster;
use lariat_core::Gvk;
use lariat_sql::{
    Field, FieldType, Query, QueryResult, Schema, SqlCache, SqlCacheBuilder, SqlKind,
};
use serde_json::{Value as Json, json};

pub(crate) struct Bench {
    pub(crate) cluster: Cluster,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::builder().start().await;
        let cluster = cluster.expect("a cluster without a socket starts");
        Self { cluster }
    }

    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.client(), "default")
    }

    pub(crate) async fn create(&self, name: &str, data: Json) -> String {
        let map = json!({"metadata": {"name": name}, "data": data});
        let map: ConfigMap = serde_json::from_value(map).expect("a ConfigMap");
        let created = self.maps().create(&PostParams::default(), &map).await;
        created
            .expect("created")
            .metadata
            .resource_version
            .expect("a version")
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

    /// Starts a cache with its informers; in a file, or in memory.
    pub(crate) async fn start(&self, file: Option<&Path>) -> Process {
        self.start_with(file, |builder| builder).await
    }

    pub(crate) async fn start_with(
        &self,
        file: Option<&Path>,
        configure: impl FnOnce(SqlCacheBuilder) -> SqlCacheBuilder,
    ) -> Process {
        let configure = |builder: SqlCacheBuilder| configure(builder.kind(schema()));
        self.start_as(file, configure).await
    }

    /// Starts a cache of kinds, ConfigMaps among them.
    pub(crate) async fn start_kinds(&self, file: Option<&Path>, schemas: Vec<Schema>) -> Process {
        let configure = |builder| schemas.into_iter().fold(builder, SqlCacheBuilder::kind);
        self.start_as(file, configure).await
    }

    async fn start_as(
        &self,
        file: Option<&Path>,
        configure: impl FnOnce(SqlCacheBuilder) -> SqlCacheBuilder,
    ) -> Process {
        let factory = SharedCacheFactory::new(self.cluster.client());
        let builder = SqlCache::builder(&factory);
        let builder = match file {
            Some(file) => builder.in_file(file),
            None => builder.in_memory(),
        };
        let sql = configure(builder).start().await.expect("started");
        factory.start();
        let maps = sql.kind(&maps_kind()).expect("the kind is there");
        Process { factory, sql, maps }
    }
}

/// What a process has.
pub(crate) struct Process {
    pub(crate) factory: SharedCacheFactory,
    pub(crate) sql: SqlCache,
    pub(crate) maps: SqlKind,
}

impl Process {
    /// Answers a query on objects of the namespace `default` as of a version.
    pub(crate) async fn at(&self, query: Query, version: &str) -> QueryResult {
        let query = query.at_least(version.parse().expect("a version"));
        let query = query.namespaces(["default"]);
        self.maps.query(&query).await.expect("answered")
    }

    pub(crate) async fn stop(self) {
        self.sql.stop().await;
        self.factory.stop().await;
    }
}

pub(crate) fn maps_kind() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

pub(crate) fn schema() -> Schema {
    let size = Field::path("data.size", FieldType::Integer).expect("a path");
    let color = Field::path("data.color", FieldType::Text).expect("a path");
    Schema::new(maps_kind(), [size, color]).expect("a schema")
}

pub(crate) fn names(answer: &QueryResult) -> Vec<&str> {
    let names = answer.objects.iter().map(|found| found.key.name());
    names.filter(|name| *name != "kube-root-ca.crt").collect()
}

/// Hides the rows of the ConfigMaps from the cache that has a file, so that it cannot be written; or shows them again.
pub(crate) fn hide(file: &Path, is_hidden: bool) {
    let database = rusqlite::Connection::open(file).expect("opened");
    let sql = "SELECT number FROM kinds WHERE kind = 'v1 ConfigMap'";
    let number: i64 = database
        .query_row(sql, [], |row| row.get(0))
        .expect("it is there");
    let rows = format!("row{number}");
    let (from, to) = if is_hidden {
        (rows.as_str(), "hidden")
    } else {
        ("hidden", rows.as_str())
    };
    let renamed = database.execute_batch(&format!("ALTER TABLE {from} RENAME TO {to};"));
    renamed.expect("renamed");
}

/// A folder that is deleted at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let name = format!("lariat-sql-{:016x}", fastrand::u64(..));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).expect("a folder is made");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
