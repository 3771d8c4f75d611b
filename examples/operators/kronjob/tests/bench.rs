//! A cluster, a clock and an operator of KronJobs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use lariat::cluster::Cluster;
use lariat::cluster::testing::TestCluster;
use lariat::{Operator, SharedControllerFactory};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::define;
use crate::kronjob::{Clock, JobTemplate, KronJob, KronJobSpec, KronJobStatus, register};

pub(super) struct Bench {
    pub(super) cluster: TestCluster,
    pub(super) kronjobs: Api<KronJob>,
    pub(super) jobs: Api<Job>,
    pub(super) operator: Operator,
    clock: Clock,
    /// The number of seconds by which the operator's clock is ahead.
    ahead: Arc<AtomicU32>,
    /// The full hour before the start of the test; the clock of the cluster cannot be set, so the time is chosen.
    hour: Timestamp,
}

/// A KronJob named `hello`, as a user would write it.
pub(super) fn kronjob(schedule: &str) -> KronJob {
    let spec = json!({"schedule": schedule, "jobTemplate": {"image": "busybox:stable"}});
    let spec: KronJobSpec = serde_json::from_value(spec).expect("what is left out has a default");
    let JobTemplate { image, .. } = &spec.job_template;
    assert_eq!(image, "busybox:stable");
    KronJob::new("hello", spec)
}

/// Waits until nothing is due any more.
pub(super) async fn settle() {
    sleep(Duration::from_millis(200)).await;
}

impl Bench {
    pub(super) async fn new() -> Self {
        Self::on(Cluster::for_test().await).await
    }

    pub(super) async fn running() -> Self {
        let bench = Self::new().await;
        bench.start().await;
        bench
    }

    /// Creates an operator, ten seconds after a full hour.
    pub(super) async fn on(cluster: TestCluster) -> Self {
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        Self::with(cluster, Operator::new("kronjob", &factory)).await
    }

    /// Registers the reconciler with an operator.
    pub(super) async fn with(cluster: TestCluster, operator: Operator) -> Self {
        define::<KronJob>(&cluster.client()).await;
        let cluster_time = Clock::fast(1);
        let ahead = Arc::new(AtomicU32::new(0));
        let (time, by) = (cluster_time.clone(), Arc::clone(&ahead));
        let clock =
            Clock::new(move || time.now() + Duration::from_secs(by.load(Ordering::Relaxed).into()));
        register(&operator, &clock).expect("it is the first");
        let seconds = cluster_time.now().as_second();
        let hour = seconds - seconds.rem_euclid(3600) + 3600;
        let left = u64::try_from(hour - seconds).expect("it is later");
        sleep(Duration::from_secs(left + 10)).await;
        Self {
            kronjobs: Api::namespaced(cluster.client(), "default"),
            jobs: Api::namespaced(cluster.client(), "default"),
            operator,
            cluster,
            clock,
            ahead,
            hour: Timestamp::from_second(hour).expect("it is soon"),
        }
    }

    pub(super) async fn start(&self) {
        self.operator.start(2).await.expect("it starts");
    }

    pub(super) async fn stop(&self) {
        self.operator.stop().await.expect("it stops");
    }

    /// Replaces the operator by another one, as a new process does.
    pub(super) fn restarted(self) -> Self {
        let factory = SharedControllerFactory::builder(self.cluster.client()).build();
        let operator = Operator::new("kronjob", &factory);
        register(&operator, &self.clock).expect("it is the first");
        Self { operator, ..self }
    }

    pub(super) fn set_clock_forward(&self, by: Duration) {
        let seconds = u32::try_from(by.as_secs()).expect("it is no century");
        self.ahead.store(seconds, Ordering::Relaxed);
    }

    pub(super) async fn create(&self, kronjob: KronJob) -> KronJob {
        let created = self.kronjobs.create(&PostParams::default(), &kronjob).await;
        created.expect("it is valid")
    }

    pub(super) async fn merge(&self, patch: Value) {
        let patch = Patch::Merge(patch);
        let patched = self
            .kronjobs
            .patch("hello", &PatchParams::default(), &patch)
            .await;
        patched.expect("it can be changed");
    }

    pub(super) async fn status(&self) -> KronJobStatus {
        let kronjob = self.kronjobs.get("hello").await.expect("it is there");
        kronjob.status.unwrap_or_default()
    }

    pub(super) async fn ready(&self) -> Condition {
        let conditions = self.status().await.conditions;
        let ready = conditions.into_iter().find(|each| each.type_ == "Ready");
        ready.expect("there is such a condition")
    }

    pub(super) async fn jobs(&self) -> Vec<Job> {
        self.jobs
            .list(&ListParams::default())
            .await
            .expect("they can be listed")
            .items
    }

    /// Returns the minutes after the full hour that have Jobs.
    pub(super) async fn ticks(&self) -> Vec<i64> {
        let jobs = self.jobs().await;
        let names = jobs.iter().map(|job| job.name_any());
        let second = |name: String| {
            name.strip_prefix("hello-")
                .and_then(|second| second.parse::<i64>().ok())
        };
        let mut minutes: Vec<i64> = names
            .map(|name| second(name).expect("its name has the time"))
            .map(|second| (second - self.hour.as_second()) / 60)
            .collect();
        minutes.sort_unstable();
        minutes
    }

    pub(super) fn at(&self, minute: i64) -> Timestamp {
        self.hour + Duration::from_secs(60 * u64::try_from(minute).expect("it is later"))
    }

    pub(super) fn minute(&self, time: &Time) -> i64 {
        (time.0.as_second() - self.hour.as_second()) / 60
    }

    /// Ends the Job of a minute, as the cluster does.
    pub(super) async fn finish(&self, minute: i64, how: &str) {
        let now = Time(self.clock.now());
        let before = if how == "Complete" {
            "SuccessCriteriaMet"
        } else {
            "FailureTarget"
        };
        let condition =
            |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
        let mut status =
            json!({"startTime": now, "conditions": [condition(before), condition(how)]});
        match how {
            "Complete" => {
                status["completionTime"] = json!(now);
                status["succeeded"] = json!(1);
            }
            _ => status["failed"] = json!(3),
        }
        self.job_status(minute, status).await;
    }

    pub(super) async fn job_status(&self, minute: i64, status: Value) {
        let name = format!("hello-{}", self.at(minute).as_second());
        let patch = Patch::Merge(json!({"status": status}));
        let patched = self
            .jobs
            .patch_status(&name, &PatchParams::default(), &patch)
            .await;
        patched.expect("there is such a Job");
    }

    /// Returns how many Events have a reason.
    pub(super) async fn events(&self, reason: &str) -> usize {
        self.events_of(reason).await.len()
    }

    /// Returns how often Events of a reason were recorded; equal ones are counted in one.
    pub(super) async fn recorded(&self, reason: &str) -> i32 {
        let events = self.events_of(reason).await;
        events.iter().filter_map(|event| event.count).sum()
    }

    async fn events_of(&self, reason: &str) -> Vec<Event> {
        settle().await;
        let events: Api<Event> = Api::namespaced(self.cluster.client(), "default");
        let events = events
            .list(&ListParams::default())
            .await
            .expect("they can be listed");
        let of_reason = |event: &Event| event.reason.as_deref() == Some(reason);
        events.items.into_iter().filter(of_reason).collect()
    }
}
