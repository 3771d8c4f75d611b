//! A cluster, a server, and processes that share it.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cache::SharedCacheFactory;
use lariat_cluster::Cluster;
use lariat_core::Gvk;
use lariat_sql::{
    Field, FieldType, Postgres, Query, QueryResult, Schema, SqlCache, SqlCacheBuilder, SqlError,
    SqlKind, field,
};
use serde_json::{Value as Json, json};
use tokio::time;

use crate::server::Server;

/// A cluster and a server.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) server: Server,
}

/// What a process has.
pub(crate) struct Process {
    factory: SharedCacheFactory,
    pub(crate) sql: SqlCache,
    pub(crate) maps: SqlKind,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self {
            cluster: Cluster::builder().start().await.expect("a cluster"),
            server: Server::start(),
        }
    }

    /// Uses the server of another process, with a cluster of its own.
    pub(crate) async fn beside(folder: PathBuf) -> Self {
        Self {
            cluster: Cluster::builder().start().await.expect("a cluster"),
            server: Server {
                folder,
                settings: Vec::new(),
                running: None,
                is_borrowed: true,
            },
        }
    }

    pub(crate) fn options(&self) -> Postgres {
        Postgres::new(&self.server.url()).expect("options")
    }

    pub(crate) async fn start(&self) -> Process {
        let started = self.start_with(self.options(), |builder| builder).await;
        started.expect("started")
    }

    pub(crate) async fn start_with(
        &self,
        options: Postgres,
        configure: impl FnOnce(SqlCacheBuilder) -> SqlCacheBuilder,
    ) -> Result<Process, SqlError> {
        self.start_kind(schema("data.color"), options, configure)
            .await
    }

    pub(crate) async fn start_kind(
        &self,
        schema: Schema,
        options: Postgres,
        configure: impl FnOnce(SqlCacheBuilder) -> SqlCacheBuilder,
    ) -> Result<Process, SqlError> {
        let factory = SharedCacheFactory::new(self.cluster.client());
        let builder = SqlCache::builder(&factory)
            .kind(schema)
            .in_postgres(options);
        let builder = builder.wait_timeout(Duration::from_secs(60));
        let sql = configure(builder).start().await?;
        factory.start();
        let maps = sql.kind(&kind())?;
        Ok(Process { factory, sql, maps })
    }

    fn maps(&self) -> Api<ConfigMap> {
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

    pub(crate) async fn patch(&self, name: &str, data: Json) -> String {
        let (patch, params) = (Patch::Merge(json!({"data": data})), PatchParams::default());
        let patched = self.maps().patch(name, &params, &patch).await;
        patched
            .expect("patched")
            .metadata
            .resource_version
            .expect("a version")
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.maps()
            .delete(name, &DeleteParams::default())
            .await
            .expect("deleted");
    }

    /// Ends the connections with this name; returns how many there were.
    pub(crate) fn terminate(&self, name: &str) -> usize {
        let sql = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '{name}' AND pid <> pg_backend_pid()"
        );
        self.server.sql(&sql).parse().expect("a number")
    }
}

impl Process {
    /// Answers a query on the red objects, or all, as of a version.
    pub(crate) async fn at(&self, query: Query, version: &str) -> QueryResult {
        let query = query.at_least(version.parse().expect("a version"));
        self.maps
            .query(&query.namespaces(["default"]))
            .await
            .expect("answered")
    }

    pub(crate) async fn names(&self, version: &str) -> Vec<String> {
        let reds = Query::new().filter(field("data.color").equals("red"));
        let answer = self.at(reds, version).await;
        answer
            .objects
            .iter()
            .map(|found| found.key.name().to_owned())
            .collect()
    }

    /// Waits until it writes, or does not.
    pub(crate) async fn becomes(&self, is_writing: bool) {
        while self.sql.is_writing() != is_writing {
            time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn stop(self) {
        self.sql.stop().await;
        self.factory.stop().await;
    }
}

pub(crate) fn kind() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

/// Returns a schema with one field beside the usual ones.
pub(crate) fn schema(path: &str) -> Schema {
    let field = Field::path(path, FieldType::Text).expect("a path");
    Schema::new(kind(), [field]).expect("a schema")
}

pub(crate) fn red() -> Json {
    json!({"color": "red"})
}
