//! Stories on a cluster on which pods take their time, as on one that is no embedded one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::cluster::testing::{crd, define, object};
use lariat::cluster::{Cluster, Workloads};
use lariat::kube::api::Api;
use lariat_integration::{example, run};

/// A cluster, with its kubeconfig in a file.
struct Slow {
    cluster: Cluster,
    kubeconfig: PathBuf,
}

impl Slow {
    async fn new() -> Self {
        let pods = Workloads::default()
            .start(Duration::from_secs(1))
            .readiness(Duration::from_secs(1))
            .run_time(Duration::from_secs(2))
            .termination(Duration::from_secs(2));
        let builder = Cluster::builder().simulate_workloads(pods).listen();
        let cluster = builder.start().await.expect("it listens");
        let name = format!("lariat-slow-{}", fastrand::u64(..));
        let kubeconfig = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let content = cluster.kubeconfig().expect("it listens");
        std::fs::write(&kubeconfig, content).expect("it can be written");
        Self {
            cluster,
            kubeconfig,
        }
    }

    /// Plays the story of an example; returns its output.
    async fn play(&self, name: &str) -> String {
        let path = self.kubeconfig.to_str().expect("it is text");
        let (code, stdout, stderr) = run(example(name, &["--kubeconfig", path])).await;
        assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
        assert!(stdout.ends_with("stopped\n"), "{stdout}");
        stdout
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.kubeconfig));
    }
}

#[tokio::test]
async fn jobs_may_take_longer_than_the_minutes_of_the_story() {
    let output = Slow::new().await.play("kronjob").await;
    assert!(
        output.contains("beyond the limit of the history"),
        "{output}"
    );
}

#[tokio::test]
async fn pods_may_take_longer_to_be_ready_than_to_be_killed() {
    let output = Slow::new().await.play("pod_terminator").await;
    for expected in ["killed 3 of 10", "killed 2 of 10", "10 of 10 pods live on"] {
        assert!(output.contains(expected), "{output}");
    }
}

#[tokio::test]
async fn the_audit_leaves_a_kind_alone_that_is_called_like_its_own() {
    let slow = Slow::new().await;
    let client = slow.cluster.client();
    define(&client, &crd("demo.dev", "v1", "Gadget"))
        .await
        .expect("it is defined");
    let gadget = object("demo.dev/v1", "Gadget", "treasure");
    gadget.create(&client).await.expect("it is created");
    slow.play("dynamic_audit").await;
    let treasure = gadget.api(&client).get_opt("treasure").await;
    assert!(treasure.expect("it is served").is_some());
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    let left = definitions
        .list(&Default::default())
        .await
        .expect("listed")
        .items;
    let names = left.into_iter().filter_map(|left| left.metadata.name);
    assert_eq!(names.collect::<Vec<_>>(), ["gadgets.demo.dev"]);
}
