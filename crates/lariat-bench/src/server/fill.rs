//! Filling the cluster, and changing what is in it.

use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use lariat_cluster::ClusterService;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower_service::Service;

use crate::pods;
use crate::pods::stamp;

/// Writes go out from this many tasks: as many as the machine has processors to spare.
pub(super) const TASKS: usize = 2;

/// Writes pods through the cluster's own API, without a socket.
pub(super) struct Filler {
    service: ClusterService,
    /// Where each pod is, by its number.
    paths: Vec<String>,
    /// The number of the pod that comes last in a list.
    last: usize,
}

/// What an answer says about the object that was written.
#[derive(Deserialize)]
struct Written {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "resourceVersion")]
    version: String,
}

impl Filler {
    /// Creates namespaces and pods.
    pub(super) async fn fill(service: ClusterService, count: usize) -> Result<Arc<Self>> {
        let filler = Self {
            service,
            paths: Vec::new(),
            last: 0,
        };
        for number in 0..pods::NAMESPACES {
            let namespace = json!({"metadata": {"name": pods::namespace(number)}});
            filler
                .send(Method::POST, "/api/v1/namespaces", namespace.to_string())
                .await?;
        }
        let mut tasks = JoinSet::new();
        let filler = Arc::new(filler);
        for range in shares(count) {
            let filler = Arc::clone(&filler);
            tasks.spawn(async move {
                let mut paths = Vec::new();
                for index in range {
                    paths.push(filler.create(index).await?);
                }
                anyhow::Ok(paths)
            });
        }
        let mut paths = Vec::new();
        for share in tasks.join_all().await {
            paths.extend(share?);
        }
        // Tasks end in any order; what a path is about is at its end.
        paths.sort_by_cached_key(|path: &String| pods::index(path));
        let last = (0..count).max_by_key(|index| &paths[*index]).unwrap_or(0);
        let service = filler.service.clone();
        Ok(Arc::new(Self {
            service,
            paths,
            last,
        }))
    }

    /// Creates a pod, and reports its status as its kubelet does; returns where it is.
    async fn create(&self, index: usize) -> Result<String> {
        let pod = pods::pod(index);
        let all = format!("/api/v1/namespaces/{}/pods", pod.namespace);
        self.send(Method::POST, &all, pod.object.to_string())
            .await?;
        let path = format!("{all}/{}", pod.name);
        let status = json!({"status": pod.status});
        self.send(Method::PATCH, &format!("{path}/status"), status.to_string())
            .await?;
        Ok(path)
    }

    /// Changes pods so many times in all, in rounds; those that are left over come first.
    ///
    /// Returns the version before the last round, in which each pod changes once: all pods, or the first
    /// ones if there are fewer changes than pods.
    pub(super) async fn modify(self: &Arc<Self>, count: usize) -> Result<u64> {
        let all = self.pods();
        let left_over = Some(count % all).filter(|left_over| *left_over > 0);
        let rounds = left_over.into_iter().chain(repeat_n(all, count / all));
        let mut before = 0;
        for (round, pods) in rounds.enumerate() {
            let mut tasks = JoinSet::new();
            for range in shares(pods) {
                let filler = Arc::clone(self);
                tasks.spawn(async move {
                    let mut first = u64::MAX;
                    for index in range {
                        first = first.min(filler.change(index, round).await?);
                    }
                    anyhow::Ok(first)
                });
            }
            before = u64::MAX;
            for first in tasks.join_all().await {
                before = before.min(first? - 1);
            }
        }
        Ok(before)
    }

    /// Changes the pod that comes last in a list; returns a version before the change.
    pub(super) async fn change_last(&self) -> Result<u64> {
        Ok(self.change(self.last, 0).await? - 1)
    }

    /// Changes a pod; returns the version that made.
    pub(super) async fn change(&self, index: usize, round: usize) -> Result<u64> {
        let metadata = json!({"annotations": changed(round)});
        self.patch(index, &metadata).await
    }

    /// Changes a pod to a state that tells when it was written.
    pub(super) async fn change_stamped(&self, index: usize) -> Result<u64> {
        // A pod that was a probe before has the label already, and has to change all the same.
        let metadata = json!({"labels": {stamp::LABEL: stamp::BLANK}, "annotations": changed(0)});
        self.patch(index, &metadata).await
    }

    async fn patch(&self, index: usize, metadata: &Value) -> Result<u64> {
        let patch = json!({"metadata": metadata});
        self.send(Method::PATCH, &self.paths[index], patch.to_string())
            .await
    }

    /// Returns how many pods there are.
    pub(super) fn pods(&self) -> usize {
        self.paths.len()
    }

    /// Sends a write; returns the version it made.
    async fn send(&self, method: Method, path: &str, body: String) -> Result<u64> {
        let media = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            // Half an object is all there is to be read of the answer.
            .header(
                "accept",
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            )
            .body(Full::new(Bytes::from(body)))?;
        let response = self.service.clone().call(request).await?;
        let status = response.status();
        let answer = response.into_body().collect().await?.to_bytes();
        let text = || String::from_utf8_lossy(&answer).into_owned();
        ensure!(status.is_success(), "{path}: {status}: {}", text());
        let written: Written = serde_json::from_slice(&answer)?;
        Ok(written.metadata.version.parse()?)
    }
}

/// Returns an annotation of the same length every time, and never the same twice.
fn changed(round: usize) -> Value {
    json!({"example.com/last-change": format!("{round:06}-{:016x}", fastrand::u64(..))})
}

/// Splits numbers evenly between the tasks.
fn shares(count: usize) -> impl Iterator<Item = Range<usize>> {
    let at = move |task: usize| count * task / TASKS;
    (0..TASKS).map(move |task| at(task)..at(task + 1))
}
