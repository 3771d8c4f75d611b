//! Fleets whose clusters need the lease of a factory.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Error};
use lariat_cluster::Cluster;
use lariat_controller::SharedControllerFactory;
use lariat_fleet::{FleetBuilder, FleetError};
use lariat_lease::{Fenced, Lease};
use parking_lot::Mutex;
use tokio::time;

use crate::bench::{Run, SECOND, cluster, create, logging};

/// The clients that the factories of members were built with.
type Clients = Arc<Mutex<Vec<Client>>>;

fn lease(identity: &str) -> Lease {
    Lease::new("hub").namespace("default").identity(identity)
}

fn elected(hub: &Cluster, identity: &str) -> SharedControllerFactory {
    SharedControllerFactory::builder(hub.client())
        .leader_election(lease(identity))
        .build()
}

/// Stores the clients of members.
fn noting_clients(builder: FleetBuilder) -> (FleetBuilder, Clients) {
    let clients = Clients::default();
    let noted = Arc::clone(&clients);
    let builder = builder.factory(move |_, client| {
        noted.lock().push(client.clone());
        SharedControllerFactory::builder(client).build()
    });
    (builder, clients)
}

async fn write(client: &Client, name: &str) -> kube::Result<ConfigMap> {
    let name = Some(name.to_owned());
    let metadata = ObjectMeta {
        name,
        ..ObjectMeta::default()
    };
    let map = ConfigMap {
        metadata,
        ..ConfigMap::default()
    };
    let api = Api::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &map).await
}

fn is_fenced(written: &kube::Result<ConfigMap>) -> bool {
    matches!(written, Err(Error::Service(error)) if error.is::<Fenced>())
}

#[tokio::test(start_paused = true)]
async fn cluster_of_code_is_operated_by_the_leader_alone() {
    let (hub, eu) = (cluster().await, cluster().await);
    let replicas = ["one", "two"].map(|identity| {
        let factory = elected(&hub, identity);
        let (builder, log) = logging();
        let fleet = builder.fenced_by(&factory).build();
        fleet.add("eu", eu.client()).expect("added");
        (Run::begin(&fleet), factory, log)
    });
    let [(mut one, first, first_log), (two, second, second_log)] = replicas;
    first.start(1).await.expect("started");
    second.start(1).await.expect("started");
    time::sleep(SECOND).await;
    create(&eu, "a").await;
    time::sleep(60 * SECOND).await;
    assert_eq!(
        (one.status(), two.status()),
        (vec!["eu: running".to_owned()], vec![])
    );
    first.stop().await.expect("stopped");
    let error = one.ended().await.expect_err("the lease is lost");
    assert!(matches!(error, FleetError::Lost { .. }), "{error}");
    time::sleep(60 * SECOND).await;
    create(&eu, "b").await;
    time::sleep(SECOND).await;
    assert_eq!(first_log.take(), ["eu: default/a"]);
    assert_eq!(second_log.take(), ["eu: default/a", "eu: default/b"]);
    two.stop().await.expect("stopped");
    second.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn client_of_member_stays_closed_when_the_lease_is_acquired_again() {
    let (hub, eu) = (cluster().await, cluster().await);
    let factory = elected(&hub, "one");
    let (builder, clients) = noting_clients(logging().0);
    let fleet = builder.fenced_by(&factory).build();
    fleet.add("eu", eu.client()).expect("added");
    let mut run = Run::begin(&fleet);
    factory.start(1).await.expect("started");
    time::sleep(60 * SECOND).await;
    let client = clients.lock()[0].clone();
    write(&client, "a").await.expect("it leads");
    hub.faults().block_leases("");
    let error = run.ended().await.expect_err("the lease is lost");
    assert_eq!(
        error.to_string(),
        "the lease default/hub was lost, which fences the fleet"
    );
    assert!(is_fenced(&write(&client, "b").await));
    let _ = factory.stop().await;
    hub.faults().clear();
    factory.start(1).await.expect("started");
    let leadership = factory.leadership().expect("it has an election");
    assert!(leadership.acquired().await);
    assert!(
        is_fenced(&write(&client, "b").await),
        "it is of the last term"
    );

    let run = Run::begin(&fleet);
    time::sleep(60 * SECOND).await;
    let client = clients.lock()[1].clone();
    write(&client, "b").await.expect("it leads again");
    run.stop().await.expect("stopped");
    factory.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn fleet_that_waits_for_its_lease_can_be_stopped() {
    let hub = cluster().await;
    let fleet = logging().0.fenced_by(&elected(&hub, "one")).build();
    let run = Run::begin(&fleet);
    time::sleep(SECOND).await;
    run.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn fleet_is_not_fenced_by_a_factory_without_leader_election() {
    let hub = cluster().await;
    let plain = SharedControllerFactory::builder(hub.client());
    let sharded = SharedControllerFactory::builder(hub.client()).sharding(lease("one"));
    for factory in [plain.build(), sharded.build()] {
        let fleet = logging().0.fenced_by(&factory).build();
        let error = Run::begin(&fleet).ended().await.expect_err("it is refused");
        assert!(matches!(error, FleetError::NoElection), "{error}");
    }
}
