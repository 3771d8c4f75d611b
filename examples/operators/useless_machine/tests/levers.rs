//! Stages 1 to 3: machines with a switch that is a field.

use lariat::cluster::faults::{Action, Rule};
use serde_json::json;

use super::super::lever::{Machine, MachineSpec};
use super::super::{stage1, stage2, stage3};
use super::*;
use crate::roles::{assert_nothing_was_forbidden, grant, with_roles};
use crate::{define, delete, merge};

struct Bench {
    cluster: TestCluster,
    machines: Api<Machine>,
    operator: Operator,
}

impl Bench {
    async fn new(register: impl FnOnce(&Operator)) -> Self {
        let cluster = Cluster::for_test().await;
        define::<Machine>(&cluster.client()).await;
        let operator = operator(&cluster);
        register(&operator);
        operator.start(1).await.expect("started");
        Self {
            machines: Api::default_namespaced(cluster.client()),
            cluster,
            operator,
        }
    }

    async fn create(&self, name: &str, position: &str) {
        let spec = MachineSpec {
            switch_position: position.to_owned(),
        };
        create(&self.machines, &Machine::new(name, spec)).await;
    }

    async fn put(&self, name: &str, position: &str) {
        let patch = json!({"spec": {"switchPosition": position}});
        merge(&self.machines, name, patch).await.expect("put");
    }

    async fn is_down(&self, name: &str) -> bool {
        self.machines.get(name).await.expect("read").is_down()
    }

    /// Returns how long it takes until a switch is down, to a tenth of a second.
    async fn wait(&self, name: &str) -> f64 {
        let begin = Instant::now();
        while !self.is_down(name).await {
            sleep(Duration::from_millis(10)).await;
        }
        (begin.elapsed().as_secs_f64() * 10.0).floor() / 10.0
    }
}

#[tokio::test(start_paused = true)]
async fn stage_1_puts_down_switches_that_are_not_down_and_nothing_else() {
    let bench = Bench::new(|operator| stage1::register(operator).unwrap()).await;
    for position in ["up", "sideways", "", "down"] {
        bench.create("robot", position).await;
        settle().await;
        assert!(bench.is_down("robot").await, "{position:?}");
        delete(&bench.machines, "robot").await.unwrap();
    }
    let patches = bench.cluster.journal().count("patch", "machines");
    assert_eq!(patches, 3, "what is down is left alone");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_deleted_is_no_error() {
    let bench = Bench::new(|operator| stage1::register(operator).unwrap()).await;
    // It is deleted between the read and the write.
    let slow = Rule::new(Action::Delay(Duration::from_secs(1))).verb("patch");
    bench.cluster.faults().add(slow);
    bench.create("robot", "up").await;
    settle().await;
    delete(&bench.machines, "robot").await.unwrap();
    sleep(Duration::from_secs(60)).await;
    let patches = bench.cluster.journal().count("patch", "machines");
    assert_eq!(patches, 1, "nothing is retried");
}

#[tokio::test(start_paused = true)]
async fn stage_2_keeps_all_machines_waiting_for_one() {
    for (concurrency, expected) in [(1, [5.0, 10.0, 15.0]), (3, [5.0, 5.0, 5.0])] {
        let cluster = Cluster::for_test().await;
        define::<Machine>(&cluster.client()).await;
        let operator = operator(&cluster);
        stage2::register(&operator, &pace(), concurrency).unwrap();
        operator.start(5).await.unwrap();
        let machines = Api::default_namespaced(cluster.client());
        let bench = Bench {
            cluster,
            machines,
            operator,
        };
        for name in ["a", "b", "c"] {
            bench.create(name, "up").await;
        }
        let mut waits = Vec::new();
        let begin = Instant::now();
        while waits.len() < 3 {
            sleep(Duration::from_millis(100)).await;
            let mut down = 0;
            for name in ["a", "b", "c"] {
                down += usize::from(bench.is_down(name).await);
            }
            waits.resize(down, begin.elapsed().as_secs_f64().floor());
        }
        assert_eq!(waits, expected);
        bench.operator.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn stage_3_waits_for_any_number_of_machines_with_one_worker() {
    let bench = Bench::new(|operator| stage3::register(operator, &pace()).unwrap()).await;
    for name in ["a", "b", "c"] {
        bench.create(name, "up").await;
    }
    assert_eq!(bench.wait("a").await, 5.0);
    settle().await;
    assert!(bench.is_down("b").await && bench.is_down("c").await);
}

/// In the lecture the time is recorded while the switch is down too, and clearing it is lost: later flips are
/// immediate.
#[tokio::test(start_paused = true)]
async fn every_flip_waits_not_only_the_first() {
    let bench = Bench::new(|operator| stage3::register(operator, &pace()).unwrap()).await;
    bench.create("robot", "down").await;
    for pause in [0, 1, 100] {
        sleep(Duration::from_secs(pause)).await;
        bench.put("robot", "up").await;
        assert_eq!(bench.wait("robot").await, 5.0, "after {pause} s");
        settle().await;
        let machine = bench.machines.get("robot").await.unwrap();
        assert_eq!(machine.status.unwrap_or_default().seen_at, None);
    }
}

#[tokio::test(start_paused = true)]
async fn using_the_switch_again_restarts_the_delay() {
    let bench = Bench::new(|operator| stage3::register(operator, &pace()).unwrap()).await;
    bench.create("robot", "up").await;
    sleep(Duration::from_secs(4)).await;
    bench.put("robot", "down").await;
    bench.put("robot", "up").await;
    assert_eq!(bench.wait("robot").await, 5.0);
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_waits_for_the_rest() {
    let pace = pace();
    let bench = Bench::new(|operator| stage3::register(operator, &pace).unwrap()).await;
    bench.create("robot", "up").await;
    sleep(Duration::from_secs(3)).await;
    bench.operator.stop().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let next = operator(&bench.cluster);
    stage3::register(&next, &pace).unwrap();
    next.start(1).await.unwrap();
    assert_eq!(bench.wait("robot").await, 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_flip_in_between_is_not_reverted_early() {
    let bench = Bench::new(|operator| stage3::register(operator, &pace()).unwrap()).await;
    bench.create("robot", "up").await;
    // The first flip meets a machine that changed under it.
    let conflict = Rule::new(Action::Conflict).verb("patch").times(1);
    let flips = |request: &lariat::cluster::RecordedRequest| request.subresource.is_none();
    bench.cluster.faults().add(conflict.when(flips));
    assert_eq!(
        bench.wait("robot").await,
        5.0,
        "the conflict is retried immediately"
    );
}

#[test]
fn records_from_before_the_clock_was_set_back_are_ignored() {
    let pace = Pace::new(DELAY);
    let hour = SignedDuration::from_hours(1);
    let (before, after) = (pace.now() - hour, pace.now() + hour);
    assert_eq!(pace.noted(Some(&before.into())), Some(before));
    assert_eq!(pace.noted(Some(&after.into())), None);
    assert_eq!(pace.left(before), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_cluster_role_of_each_stage_is_sufficient() {
    for stage in 1..=3 {
        let (cluster, operator) = with_roles().await;
        define::<Machine>(&cluster.client()).await;
        match stage {
            1 => stage1::register(&operator).unwrap(),
            2 => stage2::register(&operator, &pace(), 1).unwrap(),
            _ => stage3::register(&operator, &pace()).unwrap(),
        }
        grant(&cluster, &operator).await;
        operator.start(1).await.unwrap();
        let bench = Bench {
            machines: Api::default_namespaced(cluster.client()),
            cluster,
            operator,
        };
        bench.create("robot", "up").await;
        sleep(DELAY + Duration::from_secs(1)).await;
        assert!(bench.is_down("robot").await, "stage {stage}");
        assert_nothing_was_forbidden(&bench.cluster);
    }
}
