//! KronJobs on the embedded cluster; hours of them, on a paused clock.

mod bench;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, PostParams};
use kube::{CustomResourceExt, ResourceExt};
use lariat::cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat::cluster::testing::wait_until_gone;
use lariat::cluster::{Cluster, Workloads};
use serde_json::{Value, json};
use tokio::time::sleep;

use self::bench::{Bench, kronjob, settle};
use super::{ConcurrencyPolicy, KronJob, SCHEDULED_AT};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

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
        // The two clocks differ by what it took to make them.
        assert!(
            created.duration_since(due).abs().as_secs() <= 1,
            "{due}: {created}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_is_as_the_template_says_and_belongs_to_its_kronjob() {
    let bench = Bench::running().await;
    let mut wanted = kronjob("*/5 * * * *");
    wanted.spec.job_template.command = vec!["date".to_owned()];
    let owner = bench.create(wanted).await;
    sleep(5 * MINUTE).await;
    let job = serde_json::to_value(&bench.jobs().await[0]).unwrap();
    assert_eq!(
        job["metadata"]["annotations"][SCHEDULED_AT],
        bench.at(5).to_string()
    );
    let reference = &job["metadata"]["ownerReferences"][0];
    assert_eq!(reference["uid"], owner.uid().unwrap());
    assert_eq!(
        (&reference["controller"], &reference["kind"]),
        (&json!(true), &json!("KronJob"))
    );
    assert_eq!(job["spec"]["backoffLimit"], 2);
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "OnFailure");
    let container = &pod["containers"][0];
    assert_eq!(
        (&container["image"], &container["command"]),
        (&json!("busybox:stable"), &json!(["date"]))
    );
    assert_eq!(container["args"], Value::Null);
}

/// Lets a Job be due at minute 10 while that of minute 5 runs until minute 12, and returns which were started.
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
async fn with_forbid_a_job_waits_for_the_earlier_one_as_long_as_its_deadline_lets_it() {
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
async fn what_was_due_while_the_operator_was_away_is_made_up_for_once_within_the_deadline() {
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
async fn of_more_than_a_hundred_missed_times_the_latest_is_run_and_a_warning_tells_of_it() {
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

#[tokio::test(start_paused = true)]
async fn three_successes_and_one_failure_are_kept() {
    let bench = Bench::running().await;
    bench.create(kronjob("* * * * *")).await;
    for minute in 1..=10 {
        sleep(MINUTE).await;
        let end = if minute % 2 == 0 {
            "Failed"
        } else {
            "Complete"
        };
        bench.finish(minute, end).await;
        settle().await;
    }
    assert_eq!(bench.ticks().await, [5, 7, 9, 10]);
    assert_eq!(bench.cluster.journal().count("delete", "jobs"), 6);
    let status = bench.status().await;
    assert_eq!(status.active, []);
    let last = bench.minute(
        &status
            .last_successful_time
            .expect("the original never wrote it"),
    );
    assert_eq!(last, 9);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_zero_keeps_nothing_and_starts_nothing_twice() {
    let bench = Bench::running().await;
    let mut wanted = kronjob("*/5 * * * *");
    wanted.spec.successful_jobs_history_limit = 0;
    bench.create(wanted).await;
    sleep(5 * MINUTE).await;
    bench.finish(5, "Complete").await;
    sleep(4 * MINUTE).await;
    assert_eq!(bench.ticks().await, [0; 0]);
    assert_eq!(bench.cluster.journal().count("create", "jobs"), 1);
}

#[tokio::test(start_paused = true)]
async fn jobs_that_are_over_expire_on_time_those_that_failed_too() {
    let schema = serde_json::to_string(&KronJob::crd()).unwrap();
    assert!(
        schema.contains("completedJobsExpirySeconds"),
        "the original's definition lacked it"
    );
    for end in ["Complete", "Failed"] {
        let bench = Bench::running().await;
        let mut wanted = kronjob("0 * * * *");
        wanted.spec.completed_jobs_expiry_seconds = Some(120);
        bench.create(wanted).await;
        sleep(HOUR).await;
        bench.finish(60, end).await;
        sleep(MINUTE).await;
        assert_eq!(bench.ticks().await, [60], "{end}");
        sleep(MINUTE + Duration::from_secs(2)).await;
        assert_eq!(
            bench.ticks().await,
            [0; 0],
            "{end}: nothing else happens within the hour"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_tries_again_after_a_failed_pod_is_not_over() {
    let bench = Bench::running().await;
    let mut wanted = kronjob("*/5 * * * *");
    wanted.spec.failed_jobs_history_limit = 0;
    bench.create(wanted).await;
    sleep(5 * MINUTE).await;
    bench.job_status(5, json!({"active": 1, "failed": 1})).await;
    settle().await;
    assert_eq!(
        bench.ticks().await,
        [5],
        "the original went by the counters, and deleted it"
    );
    assert_eq!(bench.status().await.active.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_be_created_is_tried_again() {
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
    let refused = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    let rule = Rule::new(refused)
        .resource("kronjobs")
        .subresource("status");
    let rule = bench.cluster.faults().add(rule);
    sleep(5 * MINUTE).await;
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
async fn a_bad_schedule_is_said_and_waited_out_until_it_is_mended() {
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
async fn the_jobs_of_a_deleted_kronjob_go_with_it() {
    let bench = Bench::running().await;
    bench.create(kronjob("*/5 * * * *")).await;
    sleep(10 * MINUTE).await;
    bench
        .kronjobs
        .delete("hello", &DeleteParams::default())
        .await
        .unwrap();
    for job in bench.jobs().await {
        wait_until_gone(&bench.jobs, &job.name_any()).await.unwrap();
    }
    sleep(10 * MINUTE).await;
    assert_eq!(bench.cluster.journal().count("create", "jobs"), 2);
    assert_eq!(bench.ticks().await, [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_meant_is_refused() {
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
async fn jobs_run_where_pods_run() {
    let pods = Workloads::default().run_time(Duration::from_secs(90));
    let cluster = Cluster::builder().simulate_workloads(pods).for_test().await;
    let bench = Bench::on(cluster).await;
    bench.start().await;
    let mut wanted = kronjob("* * * * *");
    wanted.spec.concurrency_policy = ConcurrencyPolicy::Forbid;
    bench.create(wanted).await;
    sleep(8 * MINUTE).await;
    let succeeded = |job: &Job| {
        job.status
            .as_ref()
            .is_some_and(|status| status.succeeded == Some(1))
    };
    let jobs = bench.jobs().await;
    assert_eq!(
        jobs.iter().filter(|job| succeeded(job)).count(),
        3,
        "as many as are kept"
    );
    let created = bench.cluster.journal().count("create", "jobs");
    assert_eq!(
        created, 5,
        "each takes a minute and a half, and the next one is the latest that was missed meanwhile"
    );
}
