//! When Jobs are started: the times, policies, deadlines, and what was missed.

use jiff::Timestamp;
use kube::ResourceExt;
use lariat::cluster::faults::{Action, Refusal, Rule, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::bench::{Bench, kronjob, settle};
use super::{HOUR, MINUTE};
use crate::kronjob::{ConcurrencyPolicy, SCHEDULED_AT};

#[tokio::test(start_paused = true)]
async fn a_job_is_started_at_each_time_since_the_creation_and_at_no_other() {
    let bench = Bench::running().await;
    bench.create(kronjob("*/5 * * * *")).await;
    settle().await;
    assert_eq!(
        bench.ticks().await,
        [0; 0],
        "the original ran one at once, for a time before the creation"
    );
    for (after, expected) in [
        (4, &[][..]),
        (1, &[5]),
        (4, &[5]),
        (1, &[5, 10]),
        (5, &[5, 10, 15]),
    ] {
        sleep(after * MINUTE).await;
        assert_eq!(bench.ticks().await, expected);
    }
    let status = bench.status().await;
    assert_eq!(status.active.len(), 3);
    assert_eq!(bench.minute(&status.last_schedule_time.unwrap()), 15);
    for job in bench.jobs().await {
        let created = job.creation_timestamp().unwrap().0;
        let due: Timestamp = job.annotations()[SCHEDULED_AT].parse().unwrap();
        // The two clocks differ by the real time between their creation, on a busy machine seconds; times are minutes
        // apart.
        assert!(
            created.duration_since(due).abs().as_secs() <= 10,
            "{due}: {created}"
        );
    }
}

/// Makes a Job due at minute 10 while that of minute 5 runs until minute 12; returns the started ones.
async fn overlap(policy: ConcurrencyPolicy, deadline: Option<i64>) -> (Bench, Vec<i64>) {
    let bench = Bench::running().await;
    let mut wanted = kronjob("*/5 * * * *");
    wanted.spec.concurrency_policy = policy;
    wanted.spec.starting_deadline_seconds = deadline;
    bench.create(wanted).await;
    sleep(10 * MINUTE).await;
    let at_ten = bench.ticks().await;
    (bench, at_ten)
}

#[tokio::test(start_paused = true)]
async fn with_allow_jobs_overlap() {
    let (bench, at_ten) = overlap(ConcurrencyPolicy::Allow, None).await;
    assert_eq!(at_ten, [5, 10]);
    assert_eq!(bench.status().await.active.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn with_replace_the_earlier_job_is_deleted() {
    let (bench, at_ten) = overlap(ConcurrencyPolicy::Replace, None).await;
    assert_eq!(at_ten, [10]);
    assert_eq!(bench.status().await.active.len(), 1);
    assert_eq!(bench.cluster.journal().count("delete", "jobs"), 1);
}

#[tokio::test(start_paused = true)]
async fn with_forbid_a_job_waits_for_the_earlier_one_until_its_deadline() {
    for (deadline, expected) in [
        (None, &[5, 10][..]),
        (Some(180), &[5, 10]),
        (Some(60), &[5]),
    ] {
        let (bench, at_ten) = overlap(ConcurrencyPolicy::Forbid, deadline).await;
        assert_eq!(at_ten, [5]);
        assert_eq!(
            bench.minute(&bench.status().await.last_schedule_time.unwrap()),
            5
        );
        sleep(2 * MINUTE).await;
        bench.finish(5, "Complete").await;
        settle().await;
        assert_eq!(bench.ticks().await, expected, "{deadline:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn jobs_missed_while_the_operator_was_down_are_started_once_within_the_deadline() {
    for (deadline, expected) in [(None, &[15][..]), (Some(180), &[15]), (Some(60), &[])] {
        let bench = Bench::new().await;
        let mut wanted = kronjob("*/5 * * * *");
        wanted.spec.starting_deadline_seconds = deadline;
        bench.create(wanted).await;
        sleep(17 * MINUTE).await;
        bench.start().await;
        settle().await;
        assert_eq!(bench.ticks().await, expected, "{deadline:?}");
        let missed = bench.events("MissSchedule").await;
        assert_eq!(missed, usize::from(deadline == Some(60)), "{deadline:?}");
        sleep(3 * MINUTE).await;
        assert_eq!(bench.ticks().await.last(), Some(&20), "{deadline:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_more_than_a_hundred_missed_times_the_latest_is_run_with_a_warning() {
    for (hours, warnings) in [(1, 0), (3, 1)] {
        let bench = Bench::new().await;
        bench.create(kronjob("* * * * *")).await;
        sleep(hours * HOUR).await;
        bench.start().await;
        settle().await;
        assert_eq!(bench.ticks().await, [i64::from(hours) * 60]);
        assert_eq!(bench.events("TooManyMissedTimes").await, warnings);
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_by_hours_leads_to_one_job() {
    let bench = Bench::running().await;
    bench.create(kronjob("0 * * * *")).await;
    sleep(MINUTE).await;
    bench.set_clock_forward(5 * HOUR);
    sleep(10 * MINUTE).await;
    assert_eq!(
        bench.ticks().await,
        [5 * 60],
        "within ten minutes, though the timer was for an hour"
    );
    sleep(HOUR).await;
    assert_eq!(bench.ticks().await, [5 * 60, 6 * 60]);
}

#[tokio::test(start_paused = true)]
async fn while_it_is_suspended_nothing_starts_and_afterwards_the_latest_that_was_missed() {
    let bench = Bench::running().await;
    let mut wanted = kronjob("*/5 * * * *");
    wanted.spec.suspend = true;
    bench.create(wanted).await;
    sleep(17 * MINUTE).await;
    assert_eq!(bench.ticks().await, [0; 0]);
    bench.merge(json!({"spec": {"suspend": false}})).await;
    settle().await;
    assert_eq!(bench.ticks().await, [15]);
}

/// Until the next time of the schedule the operator checks the clock every ten minutes, without new results.
#[tokio::test(start_paused = true)]
async fn a_skipped_time_is_reported_once() {
    let bench = every("0 * * * *", json!({"startingDeadlineSeconds": 60})).await;
    sleep(HOUR + 5 * MINUTE).await;
    bench.start().await;
    sleep(50 * MINUTE).await;
    assert_eq!(bench.recorded("MissSchedule").await, 1);

    let bench = every("*/30 * * * *", json!({"concurrencyPolicy": "Forbid"})).await;
    bench.start().await;
    sleep(2 * HOUR - 2 * MINUTE).await;
    assert_eq!(bench.ticks().await, [30]);
    let waits = bench.recorded("JobAlreadyActive").await;
    assert_eq!(waits, 2, "at 60 and 90");

    let bench = Bench::new().await;
    bench.create(kronjob("* * * * *")).await;
    sleep(3 * HOUR).await;
    let refused = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    let creations = Rule::new(refused).verb("create").resource("jobs");
    bench.cluster.faults().add(creations.times(3));
    bench.start().await;
    sleep(MINUTE / 2).await;
    assert!(bench.recorded("FailedCreate").await > 1);
    assert_eq!(bench.recorded("TooManyMissedTimes").await, 1);
}

/// Creates a KronJob; no operator runs yet.
async fn every(schedule: &str, more: Value) -> Bench {
    let bench = Bench::new().await;
    bench.create(kronjob(schedule)).await;
    bench.merge(json!({"spec": more})).await;
    bench
}
