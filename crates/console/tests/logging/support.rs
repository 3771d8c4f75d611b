//! A program on the embedded cluster, and its log.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_cluster::Cluster;
use lariat_console::logging::{Logging, LoggingBuilder};
use lariat_controller::{SharedController, SharedControllerFactory};
use serde_json::{Value, json};
use tokio::time;
use tracing::dispatcher::{self, DefaultGuard};

/// The output so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Vec<u8>>>);

/// Logging of this thread.
pub(crate) struct Log {
    pub(crate) written: Written,
    pub(crate) logging: Logging,
    _guard: DefaultGuard,
}

impl Log {
    pub(crate) fn begin(filter: &str, options: LoggingBuilder) -> Self {
        let written = Written::default();
        let options = options.filter(filter).without_filter_variable();
        let built = options.writer(written.clone()).build();
        let (dispatch, logging) = built.expect("the options are right");
        Self {
            written,
            logging,
            _guard: dispatcher::set_default(&dispatch),
        }
    }

    pub(crate) fn text(&self) -> String {
        self.written.text()
    }

    /// Returns the lines of JSON about a target.
    pub(crate) fn json(&self, target: &str) -> Vec<Value> {
        let text = self.text();
        let lines = text.lines().map(|line| {
            let value: Value = serde_json::from_str(line).expect("each line is JSON");
            assert!(value.is_object(), "{line}");
            value
        });
        lines.filter(|line| line["target"] == target).collect()
    }
}

impl Written {
    pub(crate) fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8(bytes.clone()).expect("logs are UTF-8")
    }

    pub(crate) fn clear(&self) {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.clear();
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A factory of ConfigMaps.
pub(crate) struct Program {
    pub(crate) cluster: Cluster,
    pub(crate) factory: SharedControllerFactory,
    pub(crate) config_maps: SharedController<ConfigMap>,
    /// A client that is not the program's.
    pub(crate) api: Api<ConfigMap>,
}

impl Program {
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::builder().start().await.expect("it starts");
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        Self {
            config_maps: factory.for_object(),
            api: Api::namespaced(cluster.client(), "default"),
            factory,
            cluster,
        }
    }

    pub(crate) async fn create(&self, name: &str) {
        let object = config_map(name);
        let created = self.api.create(&PostParams::default(), &object).await;
        drop(created.expect("created"));
    }

    pub(crate) async fn change(&self, name: &str, value: usize) {
        let patch = Patch::Merge(json!({"data": {"value": value.to_string()}}));
        let changed = self.api.patch(name, &PatchParams::default(), &patch).await;
        drop(changed.expect("changed"));
    }
}

pub(crate) fn config_map(name: &str) -> ConfigMap {
    let object = json!({"metadata": {"name": name, "namespace": "default"}});
    serde_json::from_value(object).expect("it is one")
}

/// Waits, in paused time, until nothing is left to do.
pub(crate) async fn settle() {
    time::sleep(Duration::from_secs(2)).await;
}
