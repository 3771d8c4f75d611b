//! Each checker of replicas reports its bug, and what is allowed it does not report.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cluster::{Cluster, Commit, Commits};
use lariat_core::{Cause, Gvk, ObjectKey};
use lariat_lease::Share;
use lariat_sim::internals::{
    Activity, ActivityKind, Event, HandlerId, IncarnationId, LeaseReport, Member, Moment, Next,
    Observed, Rate, ReportPhase,
};
use serde_json::json;

use super::{calls, fenced, holders, leases, writers};
use crate::check::Check;
use crate::check::harness::{key, kind, shown};
use crate::lease_scope::LeaseScope;
use crate::oracle::Oracle;
use crate::setup::{Setup, Times, WRITER};

const SECOND: Duration = Duration::from_secs(1);

fn setup(is_sharded: bool) -> Arc<Setup> {
    let times = Times {
        duration: 15 * SECOND,
        renew_deadline: 10 * SECOND,
        retry_period: 2 * SECOND,
        drain: 30 * SECOND,
    };
    Arc::new(Setup {
        seed: 0,
        is_sharded,
        times,
        workers: 1,
        handlers: 1,
        fails: false,
        rates: vec![Rate::TRUE; 2],
    })
}

fn incarnation(process: &str) -> IncarnationId {
    IncarnationId {
        process: Arc::from(process),
        number: 0,
    }
}

fn handler(process: &str) -> HandlerId {
    HandlerId {
        incarnation: incarnation(process),
        kind: kind(),
        name: Arc::from("h0"),
    }
}

/// A checker that is shown what happens to two processes, second by second.
struct ReplicasHarness<C> {
    check: C,
    oracle: Oracle,
    number: u64,
    found: usize,
}

impl<C: Check> ReplicasHarness<C> {
    fn of(check: C) -> Self {
        let mut harness = Self {
            check,
            oracle: Oracle::default(),
            number: 0,
            found: 0,
        };
        for process in ["a", "b"] {
            harness.event(0, process, &Event::IncarnationBegan(incarnation(process)));
        }
        harness
    }

    fn event(&mut self, at: u64, actor: &str, event: &Event) {
        self.number += 1;
        let moment = Moment {
            number: self.number,
            at: Duration::from_secs(at),
            actor: Arc::from(actor),
        };
        self.oracle.saw(&moment, event);
        self.found += self.check.saw(&self.oracle, &moment, event).len();
    }

    /// A process sends a request about leases, and has the answer at once.
    fn asks(&mut self, at: u64, process: &str, what: &str) {
        let request = self.number + 1000;
        let what = what.to_owned();
        self.event(at, process, &Event::Sent { request, what });
        let result = "200".to_owned();
        self.event(at, process, &Event::Answered { request, result });
    }

    fn creates_lease(&mut self, at: u64, process: &str) {
        self.asks(
            at,
            process,
            "POST /apis/coordination.k8s.io/v1/namespaces/default/leases?",
        );
    }

    fn begins(&mut self, at: u64, process: &str, of: &ObjectKey, object: Option<Observed>) {
        let event = Event::Began {
            handler: handler(process),
            key: of.clone(),
            run: self.number,
            attempt: 1,
            object,
            causes: Arc::new(Cause::Resync.into()),
            loads: Some(1),
        };
        self.event(at, process, &event);
    }

    fn ends(&mut self, at: u64, process: &str, of: &ObjectKey) {
        let event = Event::Ended {
            handler: handler(process),
            key: of.clone(),
            run: 0,
            result: Some(Ok(())),
            next: Next::Done,
        };
        self.event(at, process, &event);
    }

    fn acts(&mut self, at: u64, process: &str, what: ActivityKind) {
        let incarnation = incarnation(process);
        self.event(at, "driver", &Event::Acted(Activity { incarnation, what }));
    }

    fn commits(&mut self, at: u64, commits: Vec<Commit>) {
        for commit in commits {
            self.event(at, "world", &Event::Committed(commit));
        }
    }

    fn report(&mut self, at: u64, phase: ReportPhase, members: Vec<Member>) {
        let report = Arc::new(LeaseReport { phase, members });
        self.event(at, "driver", &Event::LeasesReported(report));
    }
}

fn member(process: &str, leads: bool) -> Member {
    Member {
        incarnation: incarnation(process),
        leads,
        share: None,
    }
}

/// A server with leases and objects that handlers mark.
struct Server {
    cluster: Cluster,
    commits: Commits,
}

impl Server {
    async fn start() -> Self {
        let started = Cluster::builder().start().await;
        let cluster = started.expect("a cluster without a socket starts");
        let commits = cluster.commits();
        drop(commits.take());
        Self { cluster, commits }
    }

    async fn lease(&self, name: &str, holder: &str) -> Vec<Commit> {
        let leases: Api<Lease> = Api::namespaced(self.cluster.client(), "default");
        let json = json!({"metadata": {"name": name}, "spec": {"holderIdentity": holder}});
        let lease = serde_json::from_value(json).expect("a lease");
        leases
            .create(&PostParams::default(), &lease)
            .await
            .expect("created");
        self.commits.take()
    }

    async fn take_lease(&self, name: &str, holder: &str) -> Vec<Commit> {
        let leases: Api<Lease> = Api::namespaced(self.cluster.client(), "default");
        let patch = Patch::Merge(json!({"spec": {"holderIdentity": holder}}));
        let params = PatchParams::default();
        leases.patch(name, &params, &patch).await.expect("patched");
        self.commits.take()
    }

    async fn delete_lease(&self, name: &str) -> Vec<Commit> {
        let leases: Api<Lease> = Api::namespaced(self.cluster.client(), "default");
        leases
            .delete(name, &DeleteParams::default())
            .await
            .expect("deleted");
        self.commits.take()
    }

    async fn object(&self, name: &str) -> Vec<Commit> {
        let json = json!({"metadata": {"name": name}});
        let object = serde_json::from_value(json).expect("a config map");
        self.objects()
            .create(&PostParams::default(), &object)
            .await
            .expect("created");
        self.commits.take()
    }

    async fn mark(&self, name: &str, mark: &str) -> Vec<Commit> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {WRITER: mark}}}));
        let params = PatchParams::default();
        self.objects()
            .patch(name, &params, &patch)
            .await
            .expect("patched");
        self.commits.take()
    }

    fn shown(&self, name: &str) -> Option<Observed> {
        let object = self.cluster.object("configmaps", &key(name));
        object.as_ref().map(shown)
    }

    fn objects(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.client(), "default")
    }
}

#[test]
fn write_sent_after_the_deadline_or_without_a_lease_is_reported() {
    let mut harness = ReplicasHarness::of(fenced::FencedWrites::new(&setup(false)));
    let patch = "PATCH /api/v1/namespaces/default/configmaps/x";
    harness.asks(1, "b", patch);
    assert_eq!(harness.found, 1, "it has no lease");
    harness.creates_lease(1, "a");
    harness.asks(11, "a", patch);
    harness.asks(12, "a", "GET /api/v1/namespaces/default/configmaps/x");
    harness.asks(
        12,
        "a",
        "PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/trial",
    );
    assert_eq!(harness.found, 1);
    harness.asks(12, "a", patch);
    assert_eq!(harness.found, 2);
}

fn holders(is_sharded: bool) -> ReplicasHarness<holders::OneHolder> {
    let mut harness = ReplicasHarness::of(holders::OneHolder::new(&setup(is_sharded)));
    harness.creates_lease(1, "a");
    harness.begins(2, "a", &key("x"), None);
    harness
}

#[test]
fn two_processes_in_calls_for_one_key_are_reported() {
    for is_sharded in [false, true] {
        let mut harness = holders(is_sharded);
        harness.creates_lease(3, "b");
        harness.begins(4, "b", &key("x"), None);
        assert_eq!(harness.found, 1, "sharded: {is_sharded}");
    }
}

#[test]
fn in_a_ring_another_key_or_a_call_that_has_ended_is_no_second_holder() {
    let mut harness = holders(true);
    harness.creates_lease(3, "b");
    harness.begins(4, "b", &key("y"), None);
    harness.ends(5, "a", &key("x"));
    harness.begins(6, "b", &key("x"), None);
    assert_eq!(harness.found, 0);
    let mut harness = holders(false);
    harness.creates_lease(3, "b");
    harness.begins(4, "b", &key("y"), None);
    assert_eq!(harness.found, 1, "a leader has all keys");
}

#[test]
fn a_call_after_the_own_deadline_is_reported() {
    let mut harness = holders(false);
    harness.begins(10, "a", &key("y"), None);
    assert_eq!(harness.found, 0);
    harness.begins(12, "a", &key("z"), None);
    assert_eq!(harness.found, 1);
}

#[test]
fn a_suspended_process_holds_until_its_deadline() {
    for (at, found) in [(9, 1), (16, 0)] {
        let mut harness = holders(false);
        harness.acts(4, "a", ActivityKind::Paused);
        harness.creates_lease(5, "b");
        harness.asks(8, "b", "POST /leases");
        harness.begins(at, "b", &key("x"), None);
        assert_eq!(harness.found, found, "at {at}");
    }
    // It goes on, and its call is not dropped.
    let mut harness = holders(false);
    harness.acts(4, "a", ActivityKind::Paused);
    harness.acts(20, "a", ActivityKind::Resumed);
    harness.creates_lease(30, "b");
    harness.begins(31, "b", &key("x"), None);
    assert_eq!(harness.found, 1);
}

#[tokio::test]
async fn a_holder_whose_lease_was_deleted_may_be_met_in_an_election_and_in_an_empty_ring() {
    let server = Server::start().await;
    let created = server.lease("trial", "a.0").await;
    let deleted = server.delete_lease("trial").await;
    for is_sharded in [false, true] {
        let mut harness = holders(is_sharded);
        harness.commits(2, created.clone());
        harness.commits(3, deleted.clone());
        harness.creates_lease(4, "b");
        harness.begins(5, "b", &key("x"), None);
        assert_eq!(harness.found, 0, "sharded: {is_sharded}");
        // A process that has read the ring before knows of other members.
        let mut harness = holders(is_sharded);
        harness.commits(2, created.clone());
        harness.creates_lease(2, "b");
        harness.asks(2, "b", "GET /leases?&labelSelector=ring");
        harness.commits(3, deleted.clone());
        harness.begins(5, "b", &key("x"), None);
        assert_eq!(harness.found, usize::from(is_sharded));
    }
}

#[tokio::test]
async fn two_leaders_are_left_out_where_a_backup_undoes_what_the_second_has_just_taken_over() {
    for (restored_at, found) in [(31, 0), (60, 1)] {
        let server = Server::start().await;
        let mut harness = ReplicasHarness::of(holders::OneHolder::new(&setup(false)));
        harness.commits(1, server.lease("trial", "a.0").await);
        // A recording begins with all there is, as after a restored backup.
        let backup = server.cluster.commits().take();
        harness.commits(30, server.take_lease("trial", "b.0").await);
        harness.creates_lease(30, "b");
        harness.begins(30, "b", &key("x"), None);
        harness.commits(restored_at, backup);
        harness.creates_lease(restored_at + 1, "a");
        harness.begins(restored_at + 2, "a", &key("x"), None);
        assert_eq!(harness.found, found, "restored at {restored_at} s");
    }
}

/// A write of `a` whose call ends at 4 s, and a call of `b` that begins at 6 s.
async fn written(commit_at: u64) -> usize {
    let server = Server::start().await;
    let mut harness = ReplicasHarness::of(writers::OneWriter::new(&setup(true)));
    harness.commits(0, server.object("x").await);
    harness.creates_lease(1, "a");
    harness.creates_lease(1, "b");
    harness.begins(2, "a", &key("x"), server.shown("x"));
    let (incarnation, kind, key, mark) = (incarnation("a"), kind(), key("x"), Arc::from("a.0.1"));
    harness.event(
        3,
        "a",
        &Event::Writes {
            incarnation,
            kind,
            key: key.clone(),
            mark,
        },
    );
    harness.ends(4, "a", &key);
    if commit_at < 6 {
        harness.commits(commit_at, server.mark("x", "a.0.1").await);
    }
    harness.begins(6, "b", &key, server.shown("x"));
    if commit_at >= 6 {
        harness.commits(commit_at, server.mark("x", "a.0.1").await);
    }
    harness.found
}

#[tokio::test]
async fn a_write_that_is_committed_after_the_next_holder_began_is_reported() {
    assert_eq!(written(7).await, 1);
    assert_eq!(written(9).await, 1, "at the end of the margin");
}

#[tokio::test]
async fn a_write_before_that_or_on_its_way_for_longer_than_the_margin_is_not_reported() {
    assert_eq!(written(5).await, 0);
    assert_eq!(written(10).await, 0, "5 s after its call was over");
}

#[tokio::test]
async fn an_object_without_a_holder_or_with_two_is_reported() {
    let server = Server::start().await;
    for (leaders, found) in [([false, false], 1), ([true, true], 1)] {
        let mut harness = ReplicasHarness::of(calls::HolderSawLast::new(&setup(false)));
        harness.commits(0, server.object(&format!("x{found}{}", leaders[0])).await);
        let members = vec![member("a", leaders[0]), member("b", leaders[1])];
        harness.report(9, ReportPhase::Held, members);
        assert_eq!(harness.found, found, "{leaders:?}");
    }
}

#[tokio::test]
async fn a_last_state_that_its_holder_has_not_handled_is_reported() {
    let server = Server::start().await;
    let created = server.object("x").await;
    let first = server.shown("x");
    let marked = server.mark("x", "b.0.0").await;
    let calls = [
        ("b", server.shown("x"), 1),
        ("a", first, 1),
        ("a", server.shown("x"), 0),
    ];
    for (by, saw, found) in calls {
        let mut harness = ReplicasHarness::of(calls::HolderSawLast::new(&setup(false)));
        harness.commits(0, created.clone());
        harness.commits(1, marked.clone());
        harness.begins(2, by, &key("x"), saw.clone());
        harness.report(
            3,
            ReportPhase::Rest,
            vec![member("a", true), member("b", false)],
        );
        assert_eq!(
            harness.found, 1,
            "the call of {by} is under way, or saw an old state"
        );
        harness.ends(4, by, &key("x"));
        harness.report(
            5,
            ReportPhase::Rest,
            vec![member("a", true), member("b", false)],
        );
        assert_eq!(harness.found, 1 + found, "by {by}");
    }
}

#[test]
fn a_member_of_a_ring_holds_what_its_share_has() {
    let mut member = member("a", true);
    member.share = Some(Share::none());
    let place = LeaseScope::of_key(&Gvk::new("", "v1", "ConfigMap"), &key("x"));
    assert!(!place.is_held_by(&member));
    member.share = Some(Share::of("a", []));
    assert!(place.is_held_by(&member));
}

#[tokio::test]
async fn more_leases_than_holders_are_reported() {
    let server = Server::start().await;
    let mut harness = ReplicasHarness::of(leases::Leases::new(&setup(true)));
    harness.commits(0, server.lease("one", "a.0").await);
    harness.commits(0, server.lease("two", "b.0").await);
    harness.report(
        1,
        ReportPhase::Rest,
        vec![member("a", true), member("b", true)],
    );
    assert_eq!(harness.found, 0);
    harness.report(
        2,
        ReportPhase::Rest,
        vec![member("a", true), member("b", false)],
    );
    assert_eq!(harness.found, 1);
}

#[test]
fn more_requests_than_renewals_are_reported() {
    for (requests, found) in [(30, 0), (40, 1)] {
        let mut harness = ReplicasHarness::of(leases::Leases::new(&setup(false)));
        harness.report(0, ReportPhase::LastMinute, Vec::new());
        (0..requests).for_each(|_| harness.asks(30, "a", "PUT /leases/trial"));
        // There is no lease and no leader, except for the rate.
        let mut members = vec![member("a", true)];
        harness.report(60, ReportPhase::Rest, members.clone());
        // One holder without a lease is one finding.
        assert_eq!(harness.found, 1 + found, "{requests} requests");
        members[0].leads = false;
        harness.report(60, ReportPhase::Rest, members);
        assert_eq!(
            harness.found,
            2 + found,
            "on standby {requests} are too many"
        );
    }
}
