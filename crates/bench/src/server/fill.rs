//! Filling the server, and changing what is in it.

use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use anyhow::Result;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::api::Api;
use crate::pods;
use crate::pods::stamp;

/// Writes pods.
pub(super) struct Filler {
    api: Api,
    /// Where each pod is, by its number.
    paths: Vec<String>,
    /// The number of the pod that comes last in a list.
    last: usize,
}

/// Who changes pods later.
const CHANGER: &str = "lariat-bench";

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
    pub(super) async fn fill(api: Api, count: usize) -> Result<Arc<Self>> {
        for namespace in (0..pods::NAMESPACES).map(pods::namespace) {
            api.create_namespace(&namespace).await?;
        }
        Self::create_pods(api, count, None).await
    }

    /// Creates pods: all in a namespace that is there, or each in its own.
    pub(super) async fn create_pods(
        api: Api,
        count: usize,
        home: Option<&str>,
    ) -> Result<Arc<Self>> {
        let mut tasks = JoinSet::new();
        for range in shares(count, api.tasks()) {
            let (api, home) = (api.clone(), home.map(str::to_owned));
            tasks.spawn(async move {
                let mut paths = Vec::new();
                for index in range {
                    paths.push(create(&api, index, home.as_deref()).await?);
                }
                anyhow::Ok(paths)
            });
        }
        let mut paths = Vec::new();
        while let Some(share) = tasks.join_next().await {
            paths.extend(share??);
        }
        // Tasks end in any order; what a path is about is at its end.
        paths.sort_by_cached_key(|path: &String| pods::index(path));
        let last = (0..count).max_by_key(|index| &paths[*index]).unwrap_or(0);
        Ok(Arc::new(Self { api, paths, last }))
    }

    /// Makes a number of changes to pods in rounds; the remainder comes first.
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
            for range in shares(pods, self.api.tasks()) {
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
            while let Some(first) = tasks.join_next().await {
                // The version before the first change of the round; each round overwrites it, so that of the last one
                // is left.
                before = before.min(first?? - 1);
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

    /// Changes a pod to a state that says when it was written: as the stamp says.
    pub(super) async fn change_stamped(&self, index: usize, stamp: &str) -> Result<u64> {
        // A pod that was a probe before may have the stamp already, and has to change all the same.
        let metadata = json!({"labels": {stamp::LABEL: stamp}, "annotations": changed(0)});
        self.patch(index, &metadata).await
    }

    async fn patch(&self, index: usize, metadata: &Value) -> Result<u64> {
        let patch = json!({"metadata": metadata});
        // One name in all rounds, as each new one would add an entry to the managed fields.
        let path = format!("{}?fieldManager={CHANGER}", self.paths[index]);
        version(&self.api.send(Method::PATCH, &path, &patch).await?)
    }

    /// Returns how many pods there are.
    pub(super) fn pods(&self) -> usize {
        self.paths.len()
    }

    /// Returns from how many tasks writes go out.
    pub(super) fn tasks(&self) -> usize {
        self.api.tasks()
    }
}

/// Creates a pod and reports its status as a kubelet does; returns its place.
async fn create(api: &Api, index: usize, home: Option<&str>) -> Result<String> {
    let mut pod = pods::pod(index);
    if let Some(home) = home {
        pod.move_to(home);
    }
    let all = format!("/api/v1/namespaces/{}/pods", pod.namespace);
    let (controller, kubelet) = (pods::CONTROLLER, pods::KUBELET);
    let creation = format!("{all}?fieldManager={controller}");
    api.send(Method::POST, &creation, &pod.object).await?;
    let path = format!("{all}/{}", pod.name);
    let report = format!("{path}/status?fieldManager={kubelet}");
    let status = json!({"status": pod.status});
    api.send(Method::PATCH, &report, &status).await?;
    // The managed fields are a large part of a pod, so they must be as large as in a cluster.
    let owners = json!({"metadata": {"managedFields": pod.managed}});
    api.send(Method::PATCH, &path, &owners).await?;
    Ok(path)
}

/// Returns the version an answer has.
fn version(answer: &[u8]) -> Result<u64> {
    let written: Written = serde_json::from_slice(answer)?;
    Ok(written.metadata.version.parse()?)
}

/// Returns an annotation of the same length every time, and never the same twice.
fn changed(round: usize) -> Value {
    json!({"example.com/last-change": format!("{round:06}-{:016x}", fastrand::u64(..))})
}

/// Splits numbers evenly between tasks.
fn shares(count: usize, tasks: usize) -> impl Iterator<Item = Range<usize>> {
    let at = move |task: usize| count * task / tasks;
    (0..tasks).map(move |task| at(task)..at(task + 1))
}

#[cfg(test)]
mod tests {
    use lariat_cluster::Cluster;

    use super::*;

    #[tokio::test]
    async fn server_keeps_the_managers_of_a_pod_s_fields() {
        let cluster = Cluster::builder()
            .garbage_collection(false)
            .start()
            .await
            .unwrap();
        let filler = Filler::fill(Api::Embedded(cluster.service()), 3)
            .await
            .unwrap();
        let read = async |index: usize| {
            let request = http::Request::get(filler.paths[index].as_str())
                .body(Vec::new())
                .unwrap();
            let pod: Value = cluster.client().request(request).await.unwrap();
            pod
        };
        for index in 0..3 {
            let pod = read(index).await;
            assert_eq!(pod["metadata"]["managedFields"], pods::pod(index).managed);
            let size = pod.to_string().len();
            assert!((5_000..8_500).contains(&size), "{size} bytes");
        }
        filler.change(1, 0).await.unwrap();
        let pod = read(1).await;
        let entries = pod["metadata"]["managedFields"].as_array().unwrap();
        let managers: Vec<&str> = entries
            .iter()
            .filter_map(|entry| entry["manager"].as_str())
            .collect();
        assert_eq!(managers, [pods::CONTROLLER, pods::KUBELET, CHANGER]);
    }
}
