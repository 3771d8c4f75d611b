use std::time::Duration;

use lariat_cache::Metadata;
use lariat_cluster::Cluster;
use lariat_controller::{Context, Outcome, SharedController, SharedControllerFactory};
use tokio::time;

use super::*;
use crate::check::harness::{CheckHarness, incarnation, key, kind};

/// A factory that runs, with one handler, `h`, and what it is asked to do.
async fn running(cluster: &Cluster) -> (SharedControllerFactory, SharedController<Metadata>) {
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let config_maps = factory.for_kind(kind()).view::<Metadata>();
    let handler = |_: Context<Metadata>| async { Ok(Outcome::done()) };
    let registered = config_maps.register_handler("h", handler);
    registered.expect("the name is free");
    factory.start(1).await.expect("the kind is served");
    (factory, config_maps)
}

/// Returns the findings of a checker at rest, after some events and with a modified input.
async fn found<C: Check>(
    mut harness: CheckHarness<C>,
    wish: impl FnOnce(&SharedController<Metadata>, &ObjectKey),
) -> usize {
    let started = Cluster::builder().start().await;
    let cluster = started.expect("a cluster without a socket starts");
    let (factory, config_maps) = running(&cluster).await;
    wish(&config_maps, &key("a"));
    time::sleep(Duration::from_secs(1)).await;
    let rest = Rest {
        now: Duration::from_secs(1200),
        served: &[kind()],
        incarnation: &incarnation(),
        factories: &[],
        remembered: &[],
        controllers: &factory.status(),
        caches: &factory.caches().status(),
    };
    let found = harness.check.at_rest(&harness.oracle, &rest).len();
    factory.stop().await.expect("nothing is under way");
    found
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_left_is_found() {
    let nothing = found(CheckHarness::of(EmptyQueues::default()), |_, _| {}).await;
    let hour = Duration::from_secs(3600);
    let delayed = found(
        CheckHarness::of(EmptyQueues::default()),
        |controller, key| {
            controller.enqueue_after(key, hour);
        },
    );
    assert_eq!((nothing, delayed.await), (0, 1));
}

#[test]
fn a_key_that_comes_again_is_in_line_only_while_no_worker_is_free() {
    let keys = Keys {
        in_line: 1,
        held: 1,
        delayed: 1,
        workers: 1,
    };
    let found = |keys: Keys, again| keys.left(again).iter().map(|(count, _)| count).sum();
    let counts: [usize; 4] = [
        found(keys, 3),
        // One more than comes again.
        found(keys, 2),
        // The second worker should have taken it.
        found(Keys { workers: 2, ..keys }, 3),
        // A controller that does not run hands nothing out.
        found(Keys { workers: 0, ..keys }, 0),
    ];
    assert_eq!(counts, [0, 3, 1, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_seen_or_not_counted_is_found() {
    let seen = || {
        let mut harness = CheckHarness::of(Counters::default());
        harness.calls(0, "h", "a", lariat_core::Cause::Resync);
        harness
    };
    let enqueue = |controller: &SharedController<Metadata>, key: &ObjectKey| {
        controller.enqueue(key);
    };
    assert_eq!(found(seen(), enqueue).await, 0);
    assert_eq!(found(seen(), |_, _| {}).await, 1);
    assert_eq!(
        found(CheckHarness::of(Counters::default()), enqueue).await,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn an_unused_kind_is_found() {
    let harness = || {
        let mut harness = CheckHarness::of(KindsInUse::default());
        harness.starts(0);
        harness
    };
    let mut used = harness();
    used.registered("h", None);
    assert_eq!(found(used, |_, _| {}).await, 0);
    assert_eq!(found(harness(), |_, _| {}).await, 1);
}
