//! Clusters that join and leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lariat_controller::{Enqueue, HandlerResult, Outcome, SharedControllerFactory};
use lariat_core::{Gvk, ObjectKey};
use lariat_fleet::{ClusterKey, Fleet, FleetError, Member, MemberPhase, SetupError};
use lariat_operator::ReconcilerError;
use parking_lot::Mutex;
use tokio::time;

use crate::bench::{Run, SECOND, cluster, create, logging, settle};

#[tokio::test(start_paused = true)]
async fn clusters_come_and_go_while_the_fleet_runs() {
    let (eu, us) = (cluster().await, cluster().await);
    let (builder, log) = logging();
    let fleet = builder.build();
    fleet.add("eu", eu.client()).expect("added");
    create(&eu, "a").await;
    assert!(fleet.get("eu").is_none(), "it does not run yet");
    let run = Run::begin(&fleet);
    settle().await;
    assert_eq!(log.take(), ["eu: default/a"]);
    assert_eq!(run.status(), ["eu: running"]);

    fleet.add("us", us.client()).expect("added");
    create(&us, "b").await;
    create(&eu, "c").await;
    settle().await;
    assert_eq!(log.take(), ["eu: default/c", "us: default/b"]);
    let names = |fleet: &Fleet| -> Vec<Arc<str>> {
        let members = fleet.members();
        members.iter().map(|it| Arc::clone(it.name())).collect()
    };
    assert_eq!(names(&fleet), ["eu".into(), "us".into()]);

    assert!(fleet.remove("eu") && !fleet.remove("eu"));
    assert!(fleet.get("eu").is_none());
    settle().await;
    assert_eq!(run.status(), ["us: running"]);
    assert_eq!(eu.inspector().watches().len(), 0);
    create(&eu, "d").await;
    create(&us, "e").await;
    settle().await;
    assert_eq!(log.take(), ["us: default/e"]);

    // It comes back, and is reconciled again.
    fleet.add("eu", eu.client()).expect("added");
    settle().await;
    assert_eq!(
        log.take(),
        ["eu: default/a", "eu: default/c", "eu: default/d"]
    );
    run.stop().await.expect("stopped");
    assert!(fleet.members().is_empty() && fleet.status().is_empty());
    create(&us, "f").await;
    settle().await;
    assert_eq!(log.take(), [""; 0]);

    // A fleet can run again.
    let run = Run::begin(&fleet);
    settle().await;
    assert_eq!(log.take().len(), 6);
    run.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn names_are_unique_and_a_fleet_runs_once_at_a_time() {
    let eu = cluster().await;
    let (builder, _) = logging();
    let fleet = builder.build();
    fleet.add("eu", eu.client()).expect("added");
    let taken = fleet.add("eu", eu.client());
    assert!(matches!(taken, Err(FleetError::NameTaken { .. })));
    assert!(matches!(
        fleet.add("", eu.client()),
        Err(FleetError::NoName)
    ));
    let run = Run::begin(&fleet);
    settle().await;
    let second = fleet.run(1, std::future::pending::<()>()).await;
    assert!(matches!(second, Err(FleetError::AlreadyRunning)));
    run.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_leaves_and_joins_at_once_is_never_processed_twice_at_a_time() {
    let eu = cluster().await;
    let inside = Arc::new(AtomicUsize::new(0));
    let (calls, seen) = (Arc::<Mutex<Vec<usize>>>::default(), Arc::clone(&inside));
    let log = Arc::clone(&calls);
    let setup = move |member: &Member| -> Result<(), SetupError> {
        let maps = member.operator().factory().for_object::<ConfigMap>();
        let (seen, log) = (Arc::clone(&seen), Arc::clone(&log));
        let reconciler = member.operator().reconciler("slow", &maps);
        reconciler.register(move |_| {
            let (seen, log) = (Arc::clone(&seen), Arc::clone(&log));
            async move {
                log.lock().push(seen.fetch_add(1, Ordering::Relaxed));
                time::sleep(5 * SECOND).await;
                seen.fetch_sub(1, Ordering::Relaxed);
                HandlerResult::Ok(Outcome::done())
            }
        })?;
        Ok(())
    };
    let fleet = Fleet::builder("slow", setup).build();
    fleet.add("eu", eu.client()).expect("added");
    let run = Run::begin(&fleet);
    settle().await;
    calls.lock().clear();
    create(&eu, "a").await;
    settle().await;
    fleet.remove("eu");
    fleet
        .add("eu", eu.client())
        .expect("the name is free at once");
    settle().await;
    assert_eq!(run.status(), ["eu: leaving"], "a call is running");
    time::sleep(60 * SECOND).await;
    assert_eq!(run.status(), ["eu: running"]);
    let calls = calls.lock().clone();
    // Two workers process two keys at the same time, but those of the two stays do not overlap.
    assert!(
        calls.len() >= 2 && calls.iter().all(|others| *others < 2),
        "{calls:?}"
    );
    run.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn keys_carry_the_cluster() {
    let (eu, us) = (cluster().await, cluster().await);
    let (builder, log) = logging();
    let fleet = builder.build();
    for (name, cluster) in [("eu", &eu), ("us", &us)] {
        fleet.add(name, cluster.client()).expect("added");
        create(cluster, "a").await;
    }
    let run = Run::begin(&fleet);
    settle().await;
    log.take();
    let key = |cluster: &str| ClusterKey::new(cluster, ObjectKey::namespaced("default", "a"));
    let maps = || Gvk::new("", "v1", "ConfigMap");
    fleet
        .enqueue(maps(), &key("us"), &Enqueue::now())
        .expect("enqueued");
    settle().await;
    assert_eq!(log.take(), [key("us").to_string()]);
    let unknown = fleet.enqueue(maps(), &key("asia"), &Enqueue::now());
    let error = unknown.expect_err("there is none").to_string();
    assert!(error.contains("\"asia\""), "{error}");
    let no_handler = Enqueue::now().to("nothing");
    let refused = fleet.enqueue(maps(), &key("us"), &no_handler);
    assert!(matches!(refused, Err(FleetError::Enqueue(_))));
    run.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_another_cluster_is_refused() {
    let (eu, hub) = (cluster().await, cluster().await);
    let hub = SharedControllerFactory::builder(hub.client()).build();
    let refusals = Arc::<Mutex<Vec<ReconcilerError>>>::default();
    let seen = Arc::clone(&refusals);
    let setup = move |member: &Member| -> Result<(), SetupError> {
        let own = member.operator().factory().for_object::<ConfigMap>();
        let (foreign, secrets) = (hub.for_object::<ConfigMap>(), hub.for_object::<Secret>());
        let done = |_| async { HandlerResult::Ok(Outcome::done()) };
        let operator = member.operator();
        let registered = [
            operator.reconciler("foreign", &foreign).register(done),
            operator
                .reconciler("related", &own)
                .owns(&secrets)
                .register(done),
        ];
        seen.lock()
            .extend(registered.into_iter().filter_map(Result::err));
        Ok(())
    };
    let fleet = Fleet::builder("mixed", setup).build();
    fleet.add("eu", eu.client()).expect("added");
    let run = Run::begin(&fleet);
    settle().await;
    let texts: Vec<String> = refusals.lock().iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(
        texts.iter().all(|text| text.contains("another factory")),
        "{texts:?}"
    );
    run.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn a_fleet_that_is_dropped_while_it_runs_leaves_nothing() {
    let eu = cluster().await;
    let (builder, log) = logging();
    let fleet = builder.build();
    fleet.add("eu", eu.client()).expect("added");
    let run = Run::begin(&fleet);
    settle().await;
    let weak = fleet.downgrade();
    drop((run, fleet));
    settle().await;
    assert!(weak.upgrade().is_none());
    assert_eq!(eu.inspector().watches().len(), 0);
    create(&eu, "a").await;
    settle().await;
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_setup_that_fails_or_panics_is_tried_again() {
    for panics in [true, false] {
        let eu = cluster().await;
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tries);
        let setup = move |_: &Member| -> Result<(), SetupError> {
            match counted.fetch_add(1, Ordering::Relaxed) {
                0..=1 if panics => panic!("no idea"),
                0..=1 => Err("no idea".into()),
                _ => Ok(()),
            }
        };
        let fleet = Fleet::builder("clumsy", setup).build();
        fleet.add("eu", eu.client()).expect("added");
        let run = Run::begin(&fleet);
        settle().await;
        let status = &fleet.status()[0];
        assert_eq!(status.phase, MemberPhase::Waiting(SECOND));
        let error = status.error.as_deref().unwrap_or_default();
        assert!(error.ends_with("no idea"), "{error}");
        time::sleep(SECOND + 2 * SECOND).await;
        settle().await;
        assert_eq!(tries.load(Ordering::Relaxed), 3);
        assert_eq!(run.status(), ["eu: running"]);
        run.stop().await.expect("stopped");
    }
}
