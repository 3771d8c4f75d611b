//! Stories on a cluster on which pods take their time, as on one that is no embedded one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::cluster::testing::{crd, define, object};
use lariat::cluster::{Cluster, Workloads};
use lariat::kube::api::{Api, DeleteParams};
use lariat_integration::{eventually, example, run};

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
        let stdout = self.run(name).await;
        assert!(stdout.ends_with("stopped\n"), "{stdout}");
        stdout
    }

    async fn run(&self, name: &str) -> String {
        let path = self.kubeconfig.to_str().expect("it is text");
        let (code, stdout, stderr) = run(example(name, &["--kubeconfig", path])).await;
        assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
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

#[tokio::test]
async fn the_quickstart_keeps_its_crd_while_it_is_used() {
    let slow = Slow::new().await;
    let client = slow.cluster.client();
    let widget = object("demo.dev/v1", "Widget", "treasure");
    // As soon as the kind is served.
    let created = eventually(async || Ok(widget.create(&client).await?));
    let (output, _) = tokio::join!(slow.run("quickstart"), created);
    let stays = "widgets.demo.dev stays installed, since there are objects of it";
    assert!(output.contains(stays), "{output}");
    let treasure = widget.api(&client).get_opt("treasure").await;
    assert!(treasure.expect("it is served").is_some());
    // The last run deletes it, whichever run has installed it.
    let treasure = widget.api(&client);
    let now = DeleteParams::default();
    let deleted = treasure.delete("treasure", &now).await;
    deleted.expect("it is deleted");
    slow.run("quickstart").await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    let left = definitions.get_opt("widgets.demo.dev").await;
    let is_deleting = |left: CustomResourceDefinition| left.metadata.deletion_timestamp.is_some();
    assert!(left.expect("read").is_none_or(is_deleting));
}
