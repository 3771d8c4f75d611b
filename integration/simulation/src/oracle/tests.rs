use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cluster::{Cluster, Commits};
use lariat_sim::internals::{CacheProgress, IncarnationId};
use serde_json::json;

use super::*;

fn incarnation() -> IncarnationId {
    IncarnationId {
        process: Arc::from("p"),
        number: 0,
    }
}

fn kind() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

const MINUTE: u64 = 60;

/// An oracle of a cluster with one object, which is changed now and then.
struct Watched {
    cluster: Cluster,
    commits: Commits,
    oracle: Oracle,
    number: u64,
}

impl Watched {
    async fn new() -> Self {
        let cluster = Cluster::builder().start().await.unwrap();
        let mut watched = Self {
            commits: cluster.commits(),
            cluster,
            oracle: Oracle::default(),
            number: 0,
        };
        watched.create(0).await;
        watched.begins(0);
        watched
    }

    fn api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.client(), "default")
    }

    fn event(&mut self, seconds: u64, event: &Event) {
        self.number += 1;
        let moment = Moment {
            number: self.number,
            at: Duration::from_secs(seconds),
            actor: Arc::from("world"),
        };
        self.oracle.saw(&moment, event);
    }

    fn note_commits(&mut self, seconds: u64) {
        for commit in self.commits.take() {
            self.event(seconds, &Event::Committed(commit));
        }
    }

    fn begins(&mut self, seconds: u64) {
        self.event(seconds, &Event::IncarnationBegan(incarnation()));
    }

    fn ends(&mut self, seconds: u64) {
        self.event(seconds, &Event::IncarnationEnded(incarnation()));
    }

    async fn create(&mut self, seconds: u64) {
        let json = json!({"metadata": {"name": "a"}});
        let object = serde_json::from_value(json).unwrap();
        let created = self.api().create(&PostParams::default(), &object).await;
        created.unwrap();
        self.note_commits(seconds);
    }

    async fn change(&mut self, seconds: u64) {
        let patch = json!({"data": {"at": seconds.to_string()}});
        let (api, params) = (self.api(), PatchParams::default());
        let patched = api.patch("a", &params, &Patch::Merge(patch)).await;
        patched.unwrap();
        self.note_commits(seconds);
    }

    async fn delete(&mut self, seconds: u64) {
        let deleted = self.api().delete("a", &DeleteParams::default()).await;
        deleted.unwrap();
        self.note_commits(seconds);
    }

    /// The process says that its cache has everything up to a version.
    fn asked(&mut self, seconds: u64, loads: u64, complete: Option<u64>) {
        let reached = CacheProgress {
            kind: kind(),
            loads,
            complete,
        };
        let event = Event::Cached {
            incarnation: incarnation(),
            kinds: vec![reached],
        };
        self.event(seconds, &event);
    }

    fn states(&self) -> &[Past] {
        let key = ObjectKey::namespaced("default", "a");
        self.oracle.states(&kind(), &key)
    }

    fn version(&self) -> u64 {
        self.states().last().unwrap().version
    }
}

#[tokio::test]
async fn what_a_complete_cache_has_not_had_for_long_is_forgotten() {
    let mut watched = Watched::new().await;
    watched.change(MINUTE).await;
    watched.change(20 * MINUTE).await;
    let version = watched.version();
    watched.asked(29 * MINUTE, 1, Some(version));
    assert_eq!(
        watched.states().len(),
        2,
        "the last but one was followed lately"
    );
    watched.change(30 * MINUTE).await;
    watched.asked(60 * MINUTE, 1, Some(version));
    assert_eq!(
        watched.states().len(),
        2,
        "the cache may have the last but one"
    );
    watched.asked(70 * MINUTE, 1, Some(watched.version()));
    assert_eq!(watched.states().len(), 1);
}

#[tokio::test]
async fn a_cache_that_is_not_kept_up_to_date_keeps_what_it_may_show() {
    let mut watched = Watched::new().await;
    watched.asked(1, 1, Some(watched.version()));
    for minutes in 1..9 {
        watched.change(minutes * 20 * MINUTE).await;
        watched.asked(minutes * 20 * MINUTE + 1, 1, None);
    }
    assert_eq!(watched.states().len(), 10);
    watched.ends(200 * MINUTE);
    watched.change(220 * MINUTE).await;
    watched.change(240 * MINUTE).await;
    assert!(watched.states().len() <= 2, "the process is gone");
}

#[tokio::test]
async fn a_version_of_before_a_restored_backup_says_nothing() {
    let mut watched = Watched::new().await;
    let backup = watched.cluster.snapshot();
    watched.change(MINUTE).await;
    watched.change(2 * MINUTE).await;
    let version = watched.version();
    watched.asked(2 * MINUTE, 1, Some(version));
    watched.cluster.rewind_to(&backup).await.unwrap();
    watched.note_commits(3 * MINUTE);
    let states = watched.states().len();
    watched.asked(30 * MINUTE, 1, Some(version));
    watched.asked(40 * MINUTE, 1, Some(version));
    assert_eq!(
        watched.states().len(),
        states,
        "it has not read anything since"
    );
    watched.asked(50 * MINUTE, 2, Some(watched.version()));
    watched.asked(60 * MINUTE, 2, Some(watched.version()));
    assert_eq!(watched.states().len(), 1);
}

#[tokio::test]
async fn a_cache_that_was_read_again_before_it_is_asked_is_believed_once_its_version_is_new() {
    let mut watched = Watched::new().await;
    let backup = watched.cluster.snapshot();
    watched.change(MINUTE).await;
    let before = watched.version();
    watched.asked(2 * MINUTE, 1, Some(before));
    watched.cluster.rewind_to(&backup).await.unwrap();
    watched.note_commits(3 * MINUTE);
    watched.asked(4 * MINUTE, 2, Some(watched.version()));
    let states = watched.states().len();
    watched.asked(30 * MINUTE, 2, Some(watched.version()));
    watched.asked(40 * MINUTE, 2, Some(watched.version()));
    assert_eq!(watched.states().len(), states, "it may be of before");
    for seconds in 0..5 {
        watched.change(41 * MINUTE + seconds).await;
    }
    assert!(watched.version() > before);
    watched.asked(60 * MINUTE, 2, Some(watched.version()));
    watched.asked(70 * MINUTE, 2, Some(watched.version()));
    assert_eq!(watched.states().len(), 1);
}

#[tokio::test]
async fn an_object_that_is_gone_is_forgotten_in_the_end() {
    let mut watched = Watched::new().await;
    watched.delete(MINUTE).await;
    let version = watched.version();
    watched.asked(9 * MINUTE, 1, Some(version));
    assert_eq!(watched.states().len(), 3, "absent, present, absent");
    watched.asked(20 * MINUTE, 1, Some(version));
    assert!(watched.states().is_empty());
}

#[tokio::test]
async fn an_object_that_is_back_is_not_forgotten_with_its_deletion() {
    let mut watched = Watched::new().await;
    watched.delete(MINUTE).await;
    watched.create(25 * MINUTE).await;
    watched.asked(30 * MINUTE, 1, Some(watched.version()));
    let are_there = watched.states().iter().map(|past| past.object.is_some());
    assert_eq!(are_there.collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
async fn an_object_that_comes_back_after_it_was_forgotten_was_not_there_before() {
    let mut watched = Watched::new().await;
    watched.delete(MINUTE).await;
    let gone = watched.states().last().unwrap().number;
    watched.asked(10 * MINUTE, 1, Some(watched.version()));
    watched.asked(30 * MINUTE, 1, Some(u64::MAX));
    assert!(watched.states().is_empty());
    watched.create(31 * MINUTE).await;
    let [absent, present] = watched.states() else {
        panic!("{:?}", watched.states());
    };
    assert!(absent.object.is_none() && present.object.is_some());
    assert!(gone < absent.number && absent.number < present.number);
}

#[tokio::test]
async fn the_newest_version_is_that_of_the_last_commit_by_then() {
    let mut watched = Watched::new().await;
    let first = watched.version();
    watched.change(MINUTE).await;
    let newest =
        |watched: &Watched, seconds| watched.oracle.newest(&kind(), Duration::from_secs(seconds));
    assert_eq!(newest(&watched, MINUTE - 1), first);
    assert_eq!(newest(&watched, MINUTE), watched.version());
    for seconds in 0..10 {
        watched.change(10 * MINUTE + seconds).await;
    }
    assert_eq!(newest(&watched, 20 * MINUTE), watched.version());
    let kept = watched.oracle.kinds[&name_of(&kind())].recent.len();
    assert_eq!(kept, 11, "those of the last minute, and the one before");
}
