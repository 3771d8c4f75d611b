//! Runs the same seed twice, and compares log lines and requests.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lariat_cluster::Cluster;
use lariat_controller::SharedControllerFactory;
use lariat_core::clock;
use lariat_testing::Logs;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{self, Instant};

use crate::disturb;
use crate::handlers::Crew;
use crate::world::World;

/// How long the program runs, in virtual time.
const LENGTH: Duration = Duration::from_secs(1800);

#[test]
fn a_seed_repeats_every_log_line_and_request() {
    let check = |seed| {
        let (once, again) = (trace(seed), trace(seed));
        let pairs = once.lines().zip(again.lines()).enumerate();
        let differing = pairs.clone().find(|(_, (once, again))| once != again);
        assert_eq!(differing, None, "seed {seed}");
        assert_eq!(once.len(), again.len(), "seed {seed}");
        assert!(pairs.count() > 500, "seed {seed}: too little happened");
        once
    };
    assert_ne!(check(7), check(8));
}

/// Runs a program from a seed; returns what it logged, and the journal of the cluster.
fn trace(seed: u64) -> String {
    fastrand::seed(seed);
    let runtime = runtime(seed);
    let origin = runtime.block_on(async { Instant::now() });
    let _simulated = clock::simulate(move || SystemTime::UNIX_EPOCH + origin.elapsed());
    let logs = Logs::begin();
    let journal = runtime.block_on(program(seed));
    drop(runtime);
    logs.text() + &journal
}

/// Creates a runtime whose scheduler is seeded.
fn runtime(seed: u64) -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    seed_scheduler(&mut builder, seed);
    builder.build().expect("a runtime")
}

#[cfg(tokio_unstable)]
fn seed_scheduler(builder: &mut Builder, seed: u64) {
    builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes()));
}

#[cfg(not(tokio_unstable))]
fn seed_scheduler(_: &mut Builder, seed: u64) {
    panic!(
        "seed {seed}: build with --cfg tokio_unstable: RUSTFLAGS hides the flags of .cargo/config.toml"
    );
}

async fn program(seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let cluster = Cluster::builder().seed(seed).history(200).start();
    let cluster = cluster.await.expect("a cluster without a socket starts");
    let mut world = World::new(&cluster);
    let factory = SharedControllerFactory::builder(cluster.client())
        .missing_kind(lariat_cache::MissingKind::Wait)
        .caches(|caches| caches.idle_grace(Duration::from_secs(30)))
        .build();
    let mut crew = Crew::new(&factory, Arc::new(()));
    let began = Instant::now();
    let mut runs = false;
    while began.elapsed() < LENGTH {
        world.step(&mut random).await;
        crew.step(&mut random).await;
        disturb(&cluster, &mut random);
        if !runs && random.u8(..10) == 0 {
            runs = factory.start(3).await.is_ok();
        } else if runs && random.u8(..100) == 0 {
            drop(factory.stop().await);
            runs = false;
        }
        time::sleep(Duration::from_millis(random.u64(..10_000))).await;
    }
    let mut journal = String::new();
    for request in cluster.journal().requests() {
        writeln!(journal, "{request:?}").expect("a string takes everything");
    }
    journal
}
