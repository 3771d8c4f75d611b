//! Clusters that cannot be reached.

use std::time::Duration;

use lariat_cluster::faults::{Action, Rule};
use lariat_controller::SharedControllerFactory;
use tokio::time;

use crate::bench::{Run, SECOND, cluster, create, logging, settle};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_unreachable_for_an_hour_harms_no_other() {
    let (eu, us) = (cluster().await, cluster().await);
    let (builder, log) = logging();
    let fleet = builder.build();
    fleet.add("eu", eu.client()).expect("added");
    fleet.add("us", us.client()).expect("added");
    let run = Run::begin(&fleet);
    create(&eu, "a").await;
    settle().await;
    log.take();
    let outage = eu.faults().partition("");
    let requests = us.journal().total();
    for step in 0..60 {
        create(&us, &format!("b{step}")).await;
        time::sleep(60 * SECOND).await;
        assert_eq!(log.take(), [format!("us: default/b{step}")]);
    }
    assert_eq!(run.status(), ["eu: running", "us: running"]);
    let more = us.journal().total() - requests;
    // The creations, and watches that end after their time.
    assert!(more < 60 + 60, "{more} requests to the cluster that works");
    eu.faults().remove(outage);
    create(&eu, "c").await;
    time::sleep(60 * SECOND).await;
    assert_eq!(log.take(), ["eu: default/c"]);
    run.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_unreachable_from_the_beginning_joins_later() {
    let (eu, us) = (cluster().await, cluster().await);
    let (builder, log) = logging();
    let fleet = builder.build();
    let outage = eu.faults().partition("");
    fleet.add("eu", eu.client()).expect("added");
    fleet.add("us", us.client()).expect("added");
    let run = Run::begin(&fleet);
    create(&us, "a").await;
    time::sleep(HOUR).await;
    assert_eq!(log.take(), ["us: default/a"]);
    let status = run.status();
    let is_tried = status[0].starts_with("eu: retrying in 60s: ");
    assert!(
        is_tried || status[0].starts_with("eu: starting: "),
        "{status:?}"
    );
    assert_eq!(status[1], "us: running");
    eu.faults().remove(outage);
    create(&eu, "b").await;
    time::sleep(60 * SECOND).await;
    assert_eq!(log.take(), ["eu: default/b"]);
    assert_eq!(run.status(), ["eu: running", "us: running"]);
    run.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_caches_are_not_filled_in_time_is_started_again() {
    let eu = cluster().await;
    let (builder, log) = logging();
    let builder = builder.factory(|_, client| {
        let factory = SharedControllerFactory::builder(client);
        factory.sync_timeout(30 * SECOND).build()
    });
    let fleet = builder.build();
    let outage = Rule::new(Action::Disconnect).resource("configmaps");
    let outage = eu.faults().add(outage);
    fleet.add("eu", eu.client()).expect("added");
    let run = Run::begin(&fleet);
    time::sleep(31 * SECOND).await;
    let status = run.status().join(" ");
    assert!(status.starts_with("eu: retrying in 1s: "), "{status}");
    assert!(status.contains("ConfigMap"), "{status}");
    time::sleep(HOUR).await;
    eu.faults().remove(outage);
    create(&eu, "a").await;
    time::sleep(120 * SECOND).await;
    assert_eq!(log.take(), ["eu: default/a"]);
    run.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_can_leave_while_it_is_unreachable() {
    let (eu, us) = (cluster().await, cluster().await);
    let (builder, _) = logging();
    let fleet = builder.build();
    fleet.add("eu", eu.client()).expect("added");
    fleet.add("us", us.client()).expect("added");
    eu.faults().partition("");
    let run = Run::begin(&fleet);
    time::sleep(60 * SECOND).await;
    fleet.remove("eu");
    time::sleep(60 * SECOND).await;
    assert_eq!(run.status(), ["us: running"]);
    us.faults().partition("");
    time::sleep(60 * SECOND).await;
    run.stop().await.expect("stopped");
}
