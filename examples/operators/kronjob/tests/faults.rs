//! Faults: refused requests, lost responses, a restart, an invalid schedule.

use kube::api::PostParams;
use lariat::cluster::faults::{Action, Refusal, Rule, StatusCode};
use serde_json::json;
use tokio::time::sleep;

use super::bench::{Bench, kronjob, settle};
use super::{HOUR, MINUTE};
use crate::kronjob::ConcurrencyPolicy;
use crate::kronjob::KronJob;
use crate::roles::{assert_nothing_was_forbidden, grant, with_roles};

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_be_created_is_retried() {
    let bench = Bench::running().await;
    bench.create(kronjob("*/5 * * * *")).await;
    for refusal in [
        StatusCode::INTERNAL_SERVER_ERROR,
        StatusCode::CONFLICT,
        StatusCode::TOO_MANY_REQUESTS,
    ] {
        let action = Action::Refuse(Refusal::new(refusal));
        let rule = Rule::new(action).verb("create").resource("jobs").times(2);
        bench.cluster.faults().add(rule);
        sleep(5 * MINUTE).await;
    }
    sleep(MINUTE).await;
    assert_eq!(bench.ticks().await, [5, 10, 15]);
    assert!(bench.events("FailedCreate").await > 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_creation_was_not_answered_is_not_started_twice() {
    let bench = Bench::running().await;
    bench.create(kronjob("*/5 * * * *")).await;
    let rule = Rule::new(Action::LoseReply)
        .verb("create")
        .resource("jobs")
        .times(1);
    bench.cluster.faults().add(rule);
    sleep(6 * MINUTE).await;
    assert_eq!(bench.ticks().await, [5]);
    assert_eq!(
        bench.minute(&bench.status().await.last_schedule_time.unwrap()),
        5
    );
}

#[tokio::test(start_paused = true)]
async fn a_restart_between_the_job_and_the_status_does_not_run_a_time_twice() {
    let bench = Bench::running().await;
    bench.create(kronjob("*/5 * * * *")).await;
    settle().await;
    let refused = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    let rule = Rule::new(refused)
        .resource("kronjobs")
        .subresource("status");
    let rule = bench.cluster.faults().add(rule);
    sleep(5 * MINUTE).await;
    assert_eq!(bench.ticks().await, [5]);
    bench.stop().await;
    assert_eq!(
        bench.status().await.last_schedule_time,
        None,
        "it did not get so far"
    );
    bench.cluster.faults().remove(rule);
    let bench = bench.restarted();
    bench.start().await;
    settle().await;
    assert_eq!(bench.cluster.journal().count("create", "jobs"), 1);
    let status = bench.status().await;
    assert_eq!(bench.minute(&status.last_schedule_time.unwrap()), 5);
    assert_eq!(status.active.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_status_is_written_once_for_what_happened_and_not_at_all_for_nothing() {
    let bench = Bench::running().await;
    bench.create(kronjob("*/5 * * * *")).await;
    let writes = || {
        bench
            .cluster
            .journal()
            .select()
            .resource("kronjobs")
            .subresource("status")
            .count()
    };
    sleep(MINUTE).await;
    let before = writes();
    sleep(4 * MINUTE).await;
    assert_eq!(
        writes() - before,
        1,
        "the original wrote it twice, from one stale copy"
    );
    bench.job_status(5, json!({"active": 1, "ready": 1})).await;
    bench
        .merge(json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    sleep(MINUTE).await;
    assert_eq!(writes() - before, 1);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_schedule_is_reported_until_it_is_fixed() {
    for schedule in ["every now and then", "0 0 30 2 *"] {
        let bench = Bench::running().await;
        bench.create(kronjob(schedule)).await;
        settle().await;
        let ready = bench.ready().await;
        assert_eq!(ready.status, "False");
        assert!(ready.message.contains(schedule), "{}", ready.message);
        assert_eq!(bench.events("InvalidSchedule").await, 1);
        let mark = bench.cluster.journal().mark();
        sleep(HOUR).await;
        let writes = bench
            .cluster
            .journal()
            .select()
            .since(mark)
            .resource("kronjobs")
            .verb("patch")
            .count();
        assert_eq!(writes, 0);
        bench
            .merge(json!({"spec": {"schedule": "* * * * *"}}))
            .await;
        settle().await;
        assert_eq!(bench.ready().await.status, "True");
        assert_eq!(bench.ticks().await.len(), 1, "the latest it has missed");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_specs_are_refused() {
    let bench = Bench::new().await;
    let long = KronJob::new(&"x".repeat(53), kronjob("* * * * *").spec);
    let mut late = kronjob("* * * * *");
    late.spec.starting_deadline_seconds = Some(-1);
    for (wrong, expected) in [
        (long, "at most 52 characters"),
        (late, "startingDeadlineSeconds"),
    ] {
        let error = bench
            .kronjobs
            .create(&PostParams::default(), &wrong)
            .await
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn its_cluster_role_is_sufficient() {
    let (cluster, operator) = with_roles().await;
    let bench = Bench::with(cluster, operator).await;
    grant(&bench.cluster, &bench.operator).await;
    bench.start().await;
    let mut wanted = kronjob("*/5 * * * *");
    wanted.spec.concurrency_policy = ConcurrencyPolicy::Replace;
    bench.create(wanted).await;
    sleep(10 * MINUTE).await;
    assert_eq!(bench.ticks().await, [10]);
    assert_eq!(bench.events("SuccessfulDelete").await, 1);
    assert_nothing_was_forbidden(&bench.cluster);
}
