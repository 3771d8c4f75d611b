//! Concurrent runs of examples, and what they leave behind.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::cluster::Cluster;
use lariat::cluster::testing::{TestCluster, wait_for, wait_until_gone};
use lariat::kube::api::{Api, PostParams};
use lariat::{ObjectKey, Outcome};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::stage::play;
use super::{About, ExampleCluster, Options, Stage, define, merge, only_in};
use crate::useless_machine::lever::{Machine, MachineSpec};

const ABOUT: About = About {
    name: "some_example",
    what: "",
    flags: &[],
    check: |_| Ok(()),
};

const DEFINITION: &str = "machines.useless.container.training";

/// Starts a run on a foreign cluster.
async fn stage(cluster: &TestCluster) -> Stage {
    let target = ExampleCluster {
        client: cluster.client(),
        name: "a cluster".to_owned(),
        kubectl: "kubectl".to_owned(),
        embedded: None,
    };
    begin(target).await
}

async fn begin(target: ExampleCluster) -> Stage {
    let stage = Stage::new(
        target,
        ABOUT,
        Options::default(),
        |_, namespace, builder| Ok(builder.default_options(only_in(namespace))),
    );
    let stage = stage.await.expect("it begins");
    stage.define::<Machine>().await.expect("it is defined");
    stage
}

async fn create(api: &Api<Machine>, name: &str) {
    let machine = Machine::new(name, MachineSpec::default());
    let created = api.create(&PostParams::default(), &machine).await;
    created.expect("it is created");
}

async fn is_defined(cluster: &TestCluster) -> bool {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let found = definitions.get_opt(DEFINITION).await.expect("read");
    found.is_some_and(|found| found.metadata.deletion_timestamp.is_none())
}

/// Records the machines for which a run's operator is called.
fn look(stage: &Stage) -> Arc<Mutex<Vec<ObjectKey>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seeing = Arc::clone(&seen);
    let machines = stage.factory.for_object::<Machine>();
    let look = stage.operator.reconciler("look", &machines);
    let registered = look.register(move |cx| {
        seeing.lock().push(cx.key().clone());
        async { Ok(Outcome::done()) }
    });
    registered.expect("it is the first");
    seen
}

#[tokio::test(start_paused = true)]
async fn two_runs_leave_each_other_alone_and_the_last_deletes_the_crd() {
    let cluster = Cluster::for_test().await;
    let (first, second) = (stage(&cluster).await, stage(&cluster).await);
    let blue = second.another_namespace("blue").await.unwrap();
    let (by_first, by_second) = (look(&first), look(&second));
    for run in [&first, &second] {
        run.operator.start(1).await.unwrap();
    }
    let machines = second.api::<Machine>();
    create(&machines, "robot").await;
    create(&Api::namespaced(cluster.client(), &blue), "robot").await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(*by_first.lock(), []);
    let robot = ObjectKey::namespaced(&second.namespace, "robot");
    assert_eq!(*by_second.lock(), [robot]);

    let namespaces: Api<Namespace> = Api::all(cluster.client());
    let of_first = first.namespace.clone();
    first.leave(pending()).await.unwrap();
    wait_until_gone(&namespaces, &of_first).await.unwrap();
    let robot = machines.get("robot").await.unwrap();
    assert_eq!(robot.metadata.deletion_timestamp, None);
    assert!(is_defined(&cluster).await);

    let of_second = second.namespace.clone();
    second.leave(pending()).await.unwrap();
    for name in [of_second, blue] {
        wait_until_gone(&namespaces, &name).await.unwrap();
    }
    assert!(!is_defined(&cluster).await);
}

#[tokio::test(start_paused = true)]
async fn a_crd_stays_for_a_run_that_has_created_nothing_yet() {
    let cluster = Cluster::for_test().await;
    let (first, second) = (stage(&cluster).await, stage(&cluster).await);
    first.leave(pending()).await.unwrap();
    assert!(is_defined(&cluster).await);
    second.leave(pending()).await.unwrap();
    assert!(!is_defined(&cluster).await);
}

#[tokio::test(start_paused = true)]
async fn objects_of_others_stay() {
    for was_there in [true, false] {
        let cluster = Cluster::for_test().await;
        if was_there {
            define::<Machine>(&cluster.client()).await;
        }
        let run = stage(&cluster).await;
        let machines = Api::default_namespaced(cluster.client());
        if !was_there {
            create(&machines, "robot").await;
        }
        run.leave(pending()).await.unwrap();
        assert!(is_defined(&cluster).await, "{was_there}");
        let robots = machines.get_opt("robot").await.unwrap();
        assert_eq!(robots.is_some(), !was_there);
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_waited_for() {
    let cluster = Cluster::for_test().await;
    let run = stage(&cluster).await;
    let machines = run.api::<Machine>();
    create(&machines, "robot").await;
    let held = json!({"metadata": {"finalizers": ["example.com/pods"]}});
    merge(&machines, "robot", held).await.unwrap();
    // The time that pods may take to end.
    let managed = async {
        let is_going = |robot: &Machine| robot.metadata.deletion_timestamp.is_some();
        wait_for(&machines, "robot", is_going).await.unwrap();
        sleep(Duration::from_secs(31)).await;
        let free = json!({"metadata": {"finalizers": null}});
        merge(&machines, "robot", free).await.unwrap();
    };
    let (left, ()) = tokio::join!(run.leave(pending()), managed);
    left.unwrap();
    assert!(!is_defined(&cluster).await);
}

#[tokio::test(start_paused = true)]
async fn an_object_with_a_stuck_finalizer_is_named() {
    let cluster = Cluster::for_test().await;
    let run = stage(&cluster).await;
    let machines = run.api::<Machine>();
    create(&machines, "robot").await;
    let held = json!({"metadata": {"finalizers": ["example.com/stuck"]}});
    merge(&machines, "robot", held).await.unwrap();
    let began = Instant::now();
    let error = run
        .leave(pending())
        .await
        .expect_err("it is held")
        .to_string();
    assert_eq!(began.elapsed().as_secs(), 45);
    assert_eq!(
        error,
        format!(
            "not all objects of the example were deleted within 45s:\n  \
             {DEFINITION}/robot (with the finalizer example.com/stuck)"
        )
    );
    assert!(
        is_defined(&cluster).await,
        "or the robot could not be freed"
    );
}

/// A story that leaves a machine with a stuck finalizer.
async fn hold_a_robot(run: &Stage) -> anyhow::Result<()> {
    let machines = run.api::<Machine>();
    create(&machines, "robot").await;
    let held = json!({"metadata": {"finalizers": ["example.com/stuck"]}});
    merge(&machines, "robot", held).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_the_clean_up_of_a_story_that_has_ended() {
    let cluster = Cluster::for_test().await;
    let run = stage(&cluster).await;
    let (namespace, began) = (run.namespace.clone(), Instant::now());
    let signal = sleep(Duration::from_secs(5));
    let ended = play(run, signal, async |_| Ok(()), hold_a_robot).await;
    assert_eq!(began.elapsed().as_secs(), 5);
    let text = ended.expect_err("it has not left").to_string();
    let expected = "interrupted before all objects of the example were deleted";
    assert_eq!(text, format!("{expected}, in the namespaces {namespace}"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_on_the_embedded_cluster() {
    let cluster = Cluster::builder().start().await.unwrap();
    let target = ExampleCluster {
        client: cluster.client(),
        name: "the embedded cluster".to_owned(),
        kubectl: "kubectl".to_owned(),
        embedded: Some(cluster),
    };
    let run = begin(target).await;
    let (seen, began) = (look(&run), Instant::now());
    let signal = sleep(Duration::from_secs(5));
    let ended = play(run, signal, async |_| Ok(()), hold_a_robot).await;
    ended.expect("it is gone with the cluster");
    assert_eq!(began.elapsed().as_secs(), 5);
    assert_ne!(*seen.lock(), []);
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_ends_the_story_leaves_time_for_the_clean_up() {
    let cluster = Cluster::for_test().await;
    let run = stage(&cluster).await;
    let story = async |_: &Stage| pending().await;
    let signal = sleep(Duration::from_secs(5));
    let ended = play(run, signal, async |_| Ok(()), story).await;
    ended.expect("it leaves");
    assert!(!is_defined(&cluster).await);
}
