//! Where clusters come from: directories and Secrets; and clusters that serve a socket.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use lariat_cluster::Cluster;
use serde_json::{Value, json};
use tokio::time;

use crate::bench::{Log, Run};

/// How long something may take that has to happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A directory that is removed at the end.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = format!("lariat-fleet-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(path);
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        // As by a program that writes carefully: the file is never there in part.
        let (unfinished, finished) = (self.0.join(".new"), self.0.join(file));
        std::fs::write(&unfinished, text).expect("written");
        std::fs::rename(unfinished, finished).expect("renamed");
    }

    pub(crate) fn remove(&self, file: &str) {
        std::fs::remove_file(self.0.join(file)).expect("removed");
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts a cluster that serves a socket.
pub(crate) async fn served() -> (Cluster, String) {
    let cluster = Cluster::builder()
        .listen()
        .start()
        .await
        .expect("a cluster");
    let kubeconfig = cluster.kubeconfig().expect("it listens");
    (cluster, kubeconfig)
}

/// Waits until the log has exactly these lines; lines before are dropped.
pub(crate) async fn logs(log: &Log, expected: &str) {
    let waiting = async {
        while !log.take().iter().any(|line| line == expected) {
            time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = time::timeout(DEADLINE, waiting).await;
    waited.unwrap_or_else(|_| panic!("{expected:?} did not come"));
}

pub(crate) async fn reaches(run: &Run, expected: &[&str]) {
    let waiting = async {
        while run.status() != expected {
            time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = time::timeout(DEADLINE, waiting).await;
    waited.unwrap_or_else(|_| panic!("{:?} is not {expected:?}", run.status()));
}

/// Waits until the status of a run has a line that begins with a text.
pub(crate) async fn shows(run: &Run, beginning: &str) {
    let waiting = async {
        while !run.status().iter().any(|line| line.starts_with(beginning)) {
            time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = time::timeout(DEADLINE, waiting).await;
    waited.unwrap_or_else(|_| panic!("{:?} has no {beginning:?}", run.status()));
}

pub(crate) fn secret(name: &str, labels: &Value, key: &str, kubeconfig: &str) -> Secret {
    let secret = json!({
        "metadata": {"name": name, "labels": labels}, "stringData": {key: kubeconfig},
    });
    serde_json::from_value(secret).expect("a Secret")
}
