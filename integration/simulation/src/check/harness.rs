//! A harness for the checkers' own tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use lariat_cache::CachedObject;
use lariat_cluster::{Cluster, Commit, Commits, Snapshot, StoredObject};
use lariat_core::{Cause, Causes, Gvk, ObjectKey, RawObject};
use lariat_sim::internals::{
    Activity, ActivityKind, Event, HandlerId, IncarnationId, Moment, Next, Observed, Sample,
};

use super::{Check, Findings};
use crate::oracle::Oracle;

/// A checker with an oracle, and its findings.
pub(super) struct CheckHarness<C> {
    pub(super) check: C,
    pub(super) oracle: Oracle,
    found: Findings,
    number: u64,
    /// The number of the next run.
    run: u64,
}

pub(super) fn kind() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

pub(super) fn incarnation() -> IncarnationId {
    IncarnationId {
        process: Arc::from("p"),
        number: 0,
    }
}

pub(super) fn handler(name: &str) -> HandlerId {
    HandlerId {
        incarnation: incarnation(),
        kind: kind(),
        name: Arc::from(name),
    }
}

/// A server with config maps, and its commits.
pub(super) struct Server {
    cluster: Cluster,
    commits: Commits,
}

impl Server {
    pub(super) async fn start() -> Self {
        let started = Cluster::builder().start().await;
        let cluster = started.expect("a cluster without a socket starts");
        let commits = cluster.commits();
        // The objects with which each cluster starts are not part of a test.
        drop(commits.take());
        Self { cluster, commits }
    }

    /// Creates a config map, and returns its state.
    pub(super) async fn create(&self, name: &str) -> StoredObject {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        let map = ConfigMap {
            metadata,
            ..ConfigMap::default()
        };
        let created = self.api().create(&PostParams::default(), &map).await;
        created.expect("the name is free");
        let object = self.cluster.object("configmaps", &key(name));
        object.expect("it was created")
    }

    pub(super) async fn delete(&self, name: &str) {
        let deleted = self.api().delete(name, &DeleteParams::default()).await;
        deleted.expect("it exists");
    }

    pub(super) fn backup(&self) -> Snapshot {
        self.cluster.snapshot()
    }

    pub(super) async fn restore(&self, backup: &Snapshot) {
        let restored = self.cluster.rewind_to(backup).await;
        restored.expect("a backup of this cluster");
    }

    /// Returns the commits since the last call.
    pub(super) fn take(&self) -> Vec<Commit> {
        self.commits.take()
    }

    fn api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.client(), "default")
    }
}

/// Returns a state as a program is shown it.
pub(super) fn shown(object: &StoredObject) -> Observed {
    let raw = RawObject::parse(&object.json(), &kind()).expect("the server's objects are valid");
    Observed::new(&Arc::new(CachedObject::new(raw)))
}

/// A controller that is at rest, with one handler, `h`.
pub(super) fn sample(workers: Option<usize>) -> Sample {
    Sample {
        kind: kind(),
        workers,
        ready: 0,
        held: 0,
        leaving: 0,
        dequeued: 0,
        waiting: vec![(Arc::from("h"), 0)],
        is_synced: true,
        is_on_demand: false,
        version: 0,
    }
}

impl<C: Check> CheckHarness<C> {
    pub(super) fn of(check: C) -> Self {
        Self {
            check,
            oracle: Oracle::default(),
            found: Vec::new(),
            number: 0,
            run: 0,
        }
    }

    /// Passes an event to the oracle and the checker, at a time in milliseconds.
    pub(super) fn event(&mut self, millis: u64, event: &Event) {
        self.number += 1;
        let moment = Moment {
            number: self.number,
            at: Duration::from_millis(millis),
            actor: Arc::from("p"),
        };
        self.oracle.saw(&moment, event);
        self.found
            .extend(self.check.saw(&self.oracle, &moment, event));
    }

    pub(super) fn act(&mut self, millis: u64, what: ActivityKind) {
        let activity = Activity {
            incarnation: incarnation(),
            what,
        };
        self.event(millis, &Event::Acted(activity));
    }

    pub(super) fn registered(&mut self, name: &str, limit: Option<usize>) {
        let (kind, name) = (kind(), Arc::from(name));
        self.act(0, ActivityKind::Registered { kind, name, limit });
    }

    pub(super) fn starts(&mut self, millis: u64) {
        self.act(millis, ActivityKind::Starting(BTreeMap::new()));
    }

    pub(super) fn begins(&mut self, millis: u64, name: &str, of: &str, because: Causes) {
        let mut event = self.call(name, of);
        if let Event::Began { causes, .. } = &mut event {
            *causes = Arc::new(because);
        }
        self.event(millis, &event);
    }

    /// Begins a call of a handler for a key with some state of the object.
    pub(super) fn begins_with(
        &mut self,
        millis: u64,
        name: &str,
        of: &str,
        state: Option<Observed>,
    ) {
        let mut event = self.call(name, of);
        if let Event::Began { object, .. } = &mut event {
            *object = state;
        }
        self.event(millis, &event);
    }

    /// Returns the begin of the next run.
    fn call(&mut self, name: &str, of: &str) -> Event {
        self.run += 1;
        Event::Began {
            handler: handler(name),
            key: key(of),
            run: self.run,
            attempt: 1,
            object: None,
            causes: Arc::default(),
            loads: Some(1),
        }
    }

    /// Passes a commit of the server on as an event.
    pub(super) fn commits(&mut self, millis: u64, commits: Vec<Commit>) {
        for commit in commits {
            self.event(millis, &Event::Committed(commit));
        }
    }

    pub(super) fn ends(&mut self, millis: u64, name: &str, of: &str, next: Next) {
        let result = match next {
            Next::Done | Next::Again(_) => Some(Ok(())),
            Next::Retry(_) => Some(Err("no".to_owned())),
            Next::Panicked | Next::Dropped => None,
        };
        self.event(
            millis,
            &Event::Ended {
                handler: handler(name),
                key: key(of),
                run: self.run,
                result,
                next,
            },
        );
    }

    /// A call that ends at once.
    pub(super) fn calls(&mut self, millis: u64, name: &str, of: &str, cause: Cause) {
        self.begins(millis, name, of, cause.into());
        self.ends(millis, name, of, Next::Done);
    }

    /// Returns how many things were found.
    pub(super) fn found(&self) -> usize {
        self.found.len()
    }
}
