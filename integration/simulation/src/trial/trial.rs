//! The program of the trial.

use std::time::Duration;

use lariat_cache::{InitialList, KindOptions, MissingKind, Storage};
use lariat_controller::{
    ControllerOptions, FactoryPhase, HandlerOptions, SharedControllerFactory, StopError,
};
use lariat_sim::internals::{ActivityKind, ProcessExt};
use lariat_sim::{Chaos, Objects, Process, Simulation};
use serde_json::json;
use tokio::time;

use super::handlers::TrialHandlers;
use super::kinds::{PLURALS, kinds};
use super::setup::{Failed, Setup};
use super::{operator, planned};
use crate::plan::{Command, Verb};

/// The objects of the first kind before the start of a crowded trial.
const CROWD: u16 = 60;

/// The ways in which objects are stored; half of the seeds have the default.
const STORAGES: [Storage; 8] = [
    Storage::Auto,
    Storage::Auto,
    Storage::Auto,
    Storage::Auto,
    Storage::Plain,
    Storage::Compressed,
    Storage::Decoded,
    Storage::OnDemand,
];

/// The time a stop waits for calls under way.
const GRACE: Duration = Duration::from_secs(30);

/// The time a start waits for the caches.
const SYNC_TIMEOUT: Duration = Duration::from_secs(100);

/// Creates the simulation that tests Lariat: every third seed has an operator.
pub(super) fn simulation(seed: u64) -> Simulation {
    if seed % 3 == 2 {
        return operator::simulation(seed);
    }
    let [config_maps, secrets, widgets] = kinds();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let data = |number: u64| json!({"data": {"number": number.to_string()}});
    // A schema that is free allows any type.
    let spec = |number: u64| match number % 5 {
        0 => json!({"spec": number.to_string()}),
        1 => json!({"spec": [number]}),
        2 => json!({"spec": number}),
        _ => json!({"spec": {"number": number}}),
    };
    let secret = |number: u64| json!({"stringData": {"number": number.to_string()}});
    let mut random = fastrand::Rng::with_seed(seed ^ 0x7472_6961);
    let mut setup = Setup::new(&mut random);
    // A generator of its own leaves everything else about a seed as it was without crowds.
    let mut options = fastrand::Rng::with_seed(seed ^ 0x6f70_7469);
    setup.storage = STORAGES[options.usize(..STORAGES.len())];
    setup.lists = options.u8(..3) == 0;
    setup.is_crowded = fastrand::Rng::with_seed(seed ^ 0x6372_6f77).u8(..8) == 0;
    let crowd = if setup.is_crowded { CROWD } else { 0 };
    let kinds = [&config_maps, &secrets, &widgets].map(|kind| kind.kind().to_owned());
    let config_maps = Objects::new(config_maps, PLURALS[0]).content(data);
    let mut simulation = planned(seed, kinds)
        .objects(config_maps.initial(crowd))
        .objects(Objects::new(secrets, PLURALS[1]).content(secret))
        .objects(
            Objects::new(widgets, PLURALS[2])
                .content(spec)
                .custom(schema),
        )
        .chaos(Chaos::default().duration(Duration::from_secs(random.u64(10..60))));
    let replicas = if random.u8(..4) == 0 { 2 } else { 1 };
    for replica in 0..replicas {
        simulation = simulation.program(&format!("operator-{replica}"), move |process| {
            run(process, setup)
        });
    }
    simulation
}

pub(super) async fn run(process: Process, setup: Setup) -> Result<(), Failed> {
    let handlers = process.observed(HandlerOptions::default().timeout(Duration::from_secs(20)));
    let mut cache = KindOptions::default().storage(setup.storage);
    if setup.resync {
        cache = cache.resync(Duration::from_secs(40));
    }
    if setup.lists {
        cache = cache.initial_list(InitialList::List);
    }
    let options = ControllerOptions::default().handlers(handlers).cache(cache);
    let factory = process
        .factory()
        .default_options(options)
        .missing_kind(MissingKind::Wait)
        .sync_timeout(SYNC_TIMEOUT)
        .grace_period(GRACE)
        .caches(|caches| {
            let caches = caches.idle_grace(Duration::from_secs(setup.grace));
            match setup.budget {
                Some(bytes) => caches.memory_budget(bytes),
                None => caches,
            }
        })
        .build();
    process.inspect(&factory);
    let mut handlers = TrialHandlers::new(&process, &factory, setup);
    let mut runs = start(&process, &factory, setup).await;
    loop {
        let command = tokio::select! {
            biased;
            () = process.terminated() => break,
            command = Command::next(&process) => command,
            () = time::sleep(Duration::from_secs(5)) => {
                // One that was stopped, or could not be started, starts once everything is in order.
                if !runs && process.faults_ended() {
                    runs = start(&process, &factory, setup).await;
                }
                continue;
            }
        };
        let Some(command) = command else { break };
        match command.verb {
            Verb::Stop if runs => {
                drop(stop(&process, &factory).await);
                runs = false;
            }
            Verb::AbandonStop if runs => {
                abandon_stop(&process, &factory, command.delay() / 10).await;
                runs = false;
            }
            Verb::Start if !runs => runs = start(&process, &factory, setup).await,
            _ => handlers.command(command).await,
        }
    }
    handlers.leave();
    // Read before the stop: faults may end while it waits.
    let faults_ended = process.faults_ended();
    match stop(&process, &factory).await {
        // What misbehaves may outlast the grace period.
        Err(error) if faults_ended => Err(error.into()),
        _ => Ok(()),
    }
}

async fn start(process: &Process, factory: &SharedControllerFactory, setup: Setup) -> bool {
    let mut phases = factory.phases();
    let begins = async {
        // A start waits for a stop whose future was dropped, and which still calls handlers.
        let _ = phases
            .wait_for(|phase| *phase == FactoryPhase::Running)
            .await;
        let caches = factory.caches().status().into_iter();
        let loads = caches.map(|kind| (kind.gvk, kind.loads)).collect();
        process.acts(ActivityKind::Starting(loads));
        time::sleep(SYNC_TIMEOUT).await;
        // Its caches end at once, and what is under way has the grace period.
        process.acts(ActivityKind::Stopping(GRACE));
        std::future::pending().await
    };
    let started = tokio::select! {
        biased;
        // It never completes; polled first, it reports the stop before the start returns.
        () = begins => false,
        started = factory.start(setup.workers) => started.is_ok(),
    };
    if !started {
        process.acts(ActivityKind::Stopped);
    }
    started
}

async fn stop(process: &Process, factory: &SharedControllerFactory) -> Result<(), StopError> {
    process.acts(ActivityKind::Stopping(GRACE));
    let result = factory.stop().await;
    process.acts(ActivityKind::Stopped);
    result
}

/// Begins a stop, and drops its future if it has not ended after a time.
async fn abandon_stop(process: &Process, factory: &SharedControllerFactory, after: Duration) {
    process.acts(ActivityKind::Stopping(GRACE));
    if time::timeout(after, factory.stop()).await.is_ok() {
        process.acts(ActivityKind::Stopped);
    }
}
