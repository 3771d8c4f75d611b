//! Stage 4: machines with switches as separate objects.

use lariat::cluster::RecordedRequest;
use lariat::cluster::faults::{Action, After, Rule};
use lariat::cluster::testing::{wait_for, wait_until_gone};
use lariat::kube::ResourceExt;
use lariat::kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use super::super::stage4::{MACHINE, Machine, MachineSpec, Switch, SwitchSpec, register};
use super::*;
use crate::roles::{assert_nothing_was_forbidden, grant, with_roles};
use crate::{define, delete, merge};

struct Bench {
    cluster: TestCluster,
    machines: Api<Machine>,
    switches: Api<Switch>,
    operator: Operator,
    pace: Pace,
}

impl Bench {
    async fn new() -> Self {
        let cluster = Cluster::for_test().await;
        define::<Machine>(&cluster.client()).await;
        define::<Switch>(&cluster.client()).await;
        let (operator, pace) = (operator(&cluster), pace());
        register(&operator, &pace).expect("registered");
        Self::with(cluster, operator, pace).await
    }

    async fn with(cluster: TestCluster, operator: Operator, pace: Pace) -> Self {
        operator.start(2).await.expect("started");
        Self {
            machines: Api::default_namespaced(cluster.client()),
            switches: Api::default_namespaced(cluster.client()),
            operator,
            pace,
            cluster,
        }
    }

    /// Creates a machine and waits until it has its switches.
    async fn machine(&self, name: &str, switches: i32) {
        create(
            &self.machines,
            &Machine::new(name, MachineSpec { switches }),
        )
        .await;
        let down = "d".repeat(usize::try_from(switches).expect("some"));
        self.shows(name, &down).await;
    }

    async fn shows(&self, name: &str, positions: &str) {
        let is_shown = |machine: &Machine| {
            let status = machine.status.as_ref();
            status.is_some_and(|status| status.positions == positions)
        };
        wait_for(&self.machines, name, is_shown)
            .await
            .expect("shown");
        settle().await;
    }

    async fn positions(&self, name: &str) -> String {
        let machine = self.machines.get(name).await.expect("read");
        machine.status.unwrap_or_default().positions
    }

    /// Lists the switches that carry a machine's label, in the order of their names.
    async fn switches_of(&self, name: &str) -> Vec<Switch> {
        let labelled = ListParams::default().labels(&format!("{MACHINE}={name}"));
        self.switches.list(&labelled).await.expect("listed").items
    }

    async fn change(&self, switch: &Switch, patch: Value) {
        merge(&self.switches, &switch.name_any(), patch)
            .await
            .expect("changed");
    }

    async fn put(&self, switch: &Switch, position: &str) {
        self.change(switch, json!({"spec": {"position": position}}))
            .await;
    }

    async fn restart(&mut self) {
        self.operator.stop().await.expect("stopped");
        self.operator = operator(&self.cluster);
        register(&self.operator, &self.pace).expect("registered");
        self.operator.start(2).await.expect("started");
    }

    fn count(&self, verb: &str) -> usize {
        self.cluster.journal().count(verb, "switches")
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_gets_its_number_of_switches() {
    let bench = Bench::new().await;
    bench.machine("robot", 3).await;
    let machine = bench.machines.get("robot").await.unwrap();
    let switches = bench.switches_of("robot").await;
    assert_eq!((switches.len(), bench.count("create")), (3, 3));
    for switch in &switches {
        assert!(switch.name_any().starts_with("switch-"));
        assert_eq!(
            Some(&switch.owner_references()[0].uid),
            machine.uid().as_ref()
        );
    }
    for (name, switches) in [
        ("none", 0),
        (
            "a-name-that-is-longer-than-the-value-of-a-label-may-be-in-kubernetes",
            1,
        ),
    ] {
        let refused = Machine::new(name, MachineSpec { switches });
        let refused = bench
            .machines
            .create(&PostParams::default(), &refused)
            .await;
        assert!(refused.unwrap_err().to_string().contains("invalid"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_flips_one_switch_every_5_seconds() {
    let bench = Bench::new().await;
    bench.machine("robot", 3).await;
    bench.machine("piano", 1).await;
    for _ in 0..2 {
        for name in ["robot", "piano"] {
            for switch in bench.switches_of(name).await {
                bench.put(&switch, "up").await;
            }
        }
        settle().await;
        let mut seen = Vec::new();
        for _ in 0..4 {
            let ups = bench.positions("robot").await.matches('u').count();
            seen.push((ups, bench.positions("piano").await));
            sleep(DELAY).await;
        }
        let pianos = ["u", "d", "d", "d"].map(str::to_owned);
        assert_eq!(seen, Vec::from_iter([3, 2, 1, 0].into_iter().zip(pianos)));
    }
}

#[tokio::test(start_paused = true)]
async fn the_switch_that_has_been_up_for_longest_is_flipped_first() {
    let bench = Bench::new().await;
    bench.machine("robot", 2).await;
    let switches = bench.switches_of("robot").await;
    bench.put(&switches[1], "up").await;
    sleep(Duration::from_secs(2)).await;
    bench.put(&switches[0], "up").await;
    bench.shows("robot", "uu").await;
    sleep(Duration::from_secs(3)).await;
    assert_eq!(bench.positions("robot").await, "ud");
    sleep(Duration::from_secs(4)).await;
    assert_eq!(
        bench.positions("robot").await,
        "ud",
        "it was up for 7 s, but the last flip is 4 s ago"
    );
    bench.shows("robot", "dd").await;
}

/// The lecture takes the first byte of the position, which is none or half a letter for some.
#[tokio::test(start_paused = true)]
async fn positions_are_first_letters_whatever_they_are() {
    let bench = Bench::new().await;
    bench.machine("robot", 2).await;
    let switches = bench.switches_of("robot").await;
    bench.put(&switches[0], "über").await;
    bench.shows("robot", "üd").await;
    let patch = json!({"spec": {"position": ""}});
    let refused = merge(&bench.switches, &switches[1].name_any(), patch).await;
    assert!(refused.is_err());
}

#[tokio::test(start_paused = true)]
async fn of_surplus_switches_those_that_are_down_are_deleted_newest_first() {
    let bench = Bench::new().await;
    bench.machine("robot", 2).await;
    let old = bench.switches_of("robot").await;
    sleep(Duration::from_secs(2)).await;
    merge(&bench.machines, "robot", json!({"spec": {"switches": 4}}))
        .await
        .unwrap();
    bench.shows("robot", "dddd").await;
    let is_new = |switch: &&Switch| !old.iter().any(|old| old.name_any() == switch.name_any());
    let switches = bench.switches_of("robot").await;
    let kept = switches.iter().find(is_new).unwrap();
    bench.put(kept, "up").await;
    merge(&bench.machines, "robot", json!({"spec": {"switches": 2}}))
        .await
        .unwrap();
    settle().await;
    let left = bench.switches_of("robot").await;
    let names = |switches: &[Switch]| {
        switches
            .iter()
            .map(ResourceExt::name_any)
            .collect::<Vec<_>>()
    };
    assert_eq!(left.len(), 2);
    assert!(names(&left).contains(&kept.name_any()), "it is up");
    assert_eq!(
        names(&left)
            .iter()
            .filter(|name| names(&old).contains(name))
            .count(),
        1
    );
    assert!(matches!(&*bench.positions("robot").await, "ud" | "du"));
}

#[tokio::test(start_paused = true)]
async fn a_switch_that_is_deleted_is_replaced() {
    let bench = Bench::new().await;
    bench.machine("robot", 2).await;
    let switch = bench.switches_of("robot").await.remove(0);
    delete(&bench.switches, &switch.name_any()).await.unwrap();
    settle().await;
    assert_eq!(
        (
            bench.switches_of("robot").await.len(),
            bench.count("create")
        ),
        (2, 3)
    );
    assert_eq!(bench.positions("robot").await, "dd");
}

#[tokio::test(start_paused = true)]
async fn a_changed_label_calls_for_both_machines() {
    let bench = Bench::new().await;
    bench.machine("robot", 2).await;
    bench.machine("piano", 1).await;
    let moved = bench.switches_of("robot").await.remove(0);
    bench.put(&moved, "up").await;
    bench
        .change(&moved, json!({"metadata": {"labels": {MACHINE: "piano"}}}))
        .await;
    settle().await;
    assert_eq!(bench.positions("robot").await, "dd", "it has made another");
    assert_eq!(
        bench.positions("piano").await,
        "u",
        "what was down is the surplus"
    );
    let piano = bench.machines.get("piano").await.unwrap();
    let moved = bench.switches.get(&moved.name_any()).await.unwrap();
    let owners: Vec<_> = moved
        .owner_references()
        .iter()
        .map(|owner| Some(owner.uid.clone()))
        .collect();
    assert_eq!(owners, [piano.uid()]);
    bench.shows("piano", "d").await;
}

#[tokio::test(start_paused = true)]
async fn a_switch_without_the_label_is_released_and_one_created_by_hand_is_adopted() {
    let bench = Bench::new().await;
    bench.machine("robot", 1).await;
    let switch = bench.switches_of("robot").await.remove(0);
    bench
        .change(&switch, json!({"metadata": {"labels": {MACHINE: null}}}))
        .await;
    settle().await;
    let free = bench.switches.get(&switch.name_any()).await.unwrap();
    assert!(free.owner_references().is_empty());
    assert_eq!(bench.switches_of("robot").await.len(), 1);

    merge(&bench.machines, "robot", json!({"spec": {"switches": 2}}))
        .await
        .unwrap();
    let mut by_hand = Switch::new(
        "mine",
        SwitchSpec {
            position: "up".into(),
        },
    );
    by_hand.labels_mut().insert(MACHINE.into(), "robot".into());
    create(&bench.switches, &by_hand).await;
    settle().await;
    let taken = bench.switches.get("mine").await.unwrap();
    assert_eq!(taken.owner_references()[0].name, "robot");
    assert_eq!(bench.switches_of("robot").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn switches_are_deleted_with_their_machine() {
    let bench = Bench::new().await;
    bench.machine("robot", 2).await;
    let foreground = DeleteParams::foreground();
    bench.machines.delete("robot", &foreground).await.unwrap();
    wait_until_gone(&bench.machines, "robot").await.unwrap();
    settle().await;
    assert_eq!(
        (
            bench.switches_of("robot").await.len(),
            bench.count("create")
        ),
        (0, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_creates_no_switch_twice() {
    let bench = Bench::new().await;
    let silent = Rule::new(Action::HangWatch(After::Events(0)));
    let rule = bench.cluster.faults().add(silent.resource("switches"));
    bench.cluster.cut_watches();
    create(
        &bench.machines,
        &Machine::new("robot", MachineSpec { switches: 3 }),
    )
    .await;
    for number in 0..5 {
        settle().await;
        let patch = json!({"metadata": {"labels": {"number": number.to_string()}}});
        merge(&bench.machines, "robot", patch).await.unwrap();
    }
    settle().await;
    assert_eq!(
        (bench.positions("robot").await, bench.count("create")),
        ("ddd".to_owned(), 3)
    );
    assert!(
        bench.cluster.faults().hits(rule) > 0,
        "the watch was silent"
    );
    merge(&bench.machines, "robot", json!({"spec": {"switches": 1}}))
        .await
        .unwrap();
    settle().await;
    assert_eq!(
        (bench.positions("robot").await, bench.count("delete")),
        ("d".to_owned(), 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_leads_to_the_right_number_in_the_end() {
    let bench = Bench::new().await;
    let lost = Rule::new(Action::LoseReply)
        .verb("create")
        .resource("switches");
    bench.cluster.faults().add(lost.times(2));
    bench.machine("robot", 3).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.switches_of("robot").await.len(), 3);
    assert_eq!(bench.positions("robot").await, "ddd");
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_waits_for_the_rest() {
    let mut bench = Bench::new().await;
    bench.machine("robot", 2).await;
    for switch in bench.switches_of("robot").await {
        bench.put(&switch, "up").await;
    }
    bench.shows("robot", "uu").await;
    sleep(Duration::from_secs(3)).await;
    bench.restart().await;
    settle().await;
    assert_eq!(bench.positions("robot").await, "uu");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        bench.positions("robot").await.matches('u').count(),
        1,
        "seen 5 s ago"
    );
    sleep(Duration::from_secs(2)).await;
    bench.restart().await;
    settle().await;
    assert_eq!(
        bench.positions("robot").await.matches('u').count(),
        1,
        "flipped 2 s ago"
    );
    sleep(Duration::from_secs(3)).await;
    assert_eq!(bench.positions("robot").await, "dd");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_there_is_nothing_to_do() {
    let mut bench = Bench::new().await;
    bench.machine("robot", 2).await;
    let mark = bench.cluster.journal().mark();
    let patch = json!({"metadata": {"labels": {"some": "label"}}});
    merge(&bench.machines, "robot", patch).await.unwrap();
    bench.restart().await;
    sleep(Duration::from_secs(600)).await;
    let requests = bench.cluster.journal().select().since(mark).requests();
    let is_write = |request: &&RecordedRequest| !matches!(&*request.verb, "get" | "list" | "watch");
    let written: Vec<_> = requests.iter().filter(is_write).collect();
    assert_eq!(written.len(), 1, "the label: {written:?}");
}

#[tokio::test(start_paused = true)]
async fn its_cluster_role_is_sufficient() {
    let (cluster, operator) = with_roles().await;
    define::<Machine>(&cluster.client()).await;
    define::<Switch>(&cluster.client()).await;
    let pace = pace();
    register(&operator, &pace).unwrap();
    grant(&cluster, &operator).await;
    let bench = Bench::with(cluster, operator, pace).await;
    bench.machine("robot", 2).await;
    let switch = &bench.switches_of("robot").await[0];
    bench.put(switch, "up").await;
    sleep(DELAY + Duration::from_secs(1)).await;
    assert_eq!(bench.positions("robot").await, "dd");
    let fewer = json!({"spec": {"switches": 1}});
    merge(&bench.machines, "robot", fewer).await.unwrap();
    bench.shows("robot", "d").await;
    assert_nothing_was_forbidden(&bench.cluster);
}
