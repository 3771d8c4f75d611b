//! Runs ten hours of virtual time with random changes and faults, and checks the final state.
//!
//! The seed is printed; `LARIAT_SOAK_SEED` chooses another.

mod handlers;
mod repeats;
mod world;

use std::sync::Arc;
use std::time::Duration;

use handlers::Crew;
use lariat_cache::MissingKind;
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::SharedControllerFactory;
use tokio::runtime::Handle;
use tokio::time::{self, Instant};
use world::World;

const HOURS: u64 = 10;

fn seed() -> u64 {
    let chosen = std::env::var("LARIAT_SOAK_SEED").ok();
    let seed = chosen.and_then(|seed| seed.parse().ok());
    seed.unwrap_or(20_261_121)
}

#[tokio::test(start_paused = true)]
async fn ten_hours_lose_nothing_and_leave_nothing_behind() {
    let seed = seed();
    println!("seed {seed}");
    // The libraries' own jitter too.
    fastrand::seed(seed);
    let mut random = fastrand::Rng::with_seed(seed);
    let cluster = Cluster::builder()
        .seed(seed)
        .history(200)
        .start()
        .await
        .unwrap();
    let mut world = World::new(&cluster);
    let factory = SharedControllerFactory::builder(cluster.client())
        .missing_kind(MissingKind::Wait)
        .caches(|caches| caches.idle_grace(Duration::from_secs(30)))
        .build();
    // kube's client and Lariat's have a task each, as long as they exist.
    let _client = factory.client();
    time::sleep(Duration::from_secs(1)).await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let witness = Arc::new(());
    let mut crew = Crew::new(&factory, Arc::clone(&witness));
    let runs = ten_hours(&cluster, &factory, (&mut world, &mut crew), &mut random).await;
    cluster.faults().clear();
    world.define_all().await;
    if !runs {
        factory.start(3).await.unwrap();
    }
    crew.be_good();
    time::sleep(Duration::from_secs(1200)).await;
    println!(
        "{} changes, {} calls, {} handlers",
        world.changes,
        crew.calls(),
        crew.registered()
    );
    assert!(world.changes > 1000 && crew.calls() > world.changes);
    crew.compare_with(&world);
    for status in factory.status() {
        let (kind, queue) = (&status.cache.gvk, &status.queue);
        assert_eq!((queue.depth(), queue.processing), (0, 0), "{kind}");
        assert!(
            status.hot_loops.is_empty(),
            "{kind}: {:?}",
            status.hot_loops
        );
    }
    crew.leave().await;
    time::sleep(Duration::from_secs(120)).await;
    assert!(
        factory.status().is_empty(),
        "kinds end with their last handler"
    );
    assert!(
        factory.caches().status().is_empty(),
        "and their memory is freed"
    );
    factory.stop().await.unwrap();
    assert_eq!(Arc::strong_count(&witness), 1, "no handler is left");
    let left = Handle::current().metrics().num_alive_tasks();
    assert_eq!(left, tasks, "no task is left");
}

/// Lets ten hours pass; returns whether the factory runs at the end.
async fn ten_hours(
    cluster: &Cluster,
    factory: &SharedControllerFactory,
    (world, crew): (&mut World, &mut Crew),
    random: &mut fastrand::Rng,
) -> bool {
    let began = Instant::now();
    let mut runs = false;
    while began.elapsed() < Duration::from_secs(HOURS * 3600) {
        world.step(random).await;
        crew.step(random).await;
        disturb(cluster, random);
        match random.u16(..600) {
            0 if runs => {
                // Unfinished keys are kept for the next start.
                drop(factory.stop().await);
                runs = false;
            }
            1..30 if !runs => {
                // A kind may be missing for too long.
                runs = factory.start(3).await.is_ok();
            }
            _ => {}
        }
        time::sleep(Duration::from_millis(random.u64(..20_000))).await;
    }
    runs
}

/// Sets a random fault for list and watch requests.
fn disturb(cluster: &Cluster, random: &mut fastrand::Rng) {
    let faults = cluster.faults();
    let verb = if random.bool() { "watch" } else { "list" };
    let refuse = |code| Action::Refuse(Refusal::new(code));
    let action = match random.u8(..60) {
        0 => return cluster.cut_watches(),
        1 => return cluster.end_watches(),
        2 => {
            cluster.compact();
            return cluster.cut_watches();
        }
        3 => refuse(http::StatusCode::SERVICE_UNAVAILABLE),
        4 => Action::Refuse(Refusal::too_many_requests()),
        5 => refuse(http::StatusCode::INTERNAL_SERVER_ERROR),
        6 => Action::Delay(Duration::from_secs(random.u64(1..60))),
        7 => {
            let conflict = Action::Refuse(Refusal::new(http::StatusCode::CONFLICT));
            faults.add(Rule::new(conflict).verb("patch").times(random.u64(1..5)));
            return;
        }
        8..12 => return faults.clear(),
        _ => return,
    };
    faults.add(Rule::new(action).verb(verb).times(random.u64(1..20)));
}
