//! Each state of a kind meets each event: the kind is in a state it knows, and what comes next works.
//!
//! A dash means that the event cannot come in this state:
//!
//! - No handler is registered in a kind that rests, so none can be deregistered or paused.
//! - The task runs code of users only while it runs the kind or leaves that state: it polls and drops streams of keys.
//! - A kind waits on standby only for its own lease, so the lease is lost by a kind that runs, drains or has run. A
//!   process that has no part of the ring yet has no key whose permit could be revoked.

use std::pin::Pin;
use std::task::{Context as Polling, Poll};

use futures::Stream;
use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::{
    Enqueue, FactoryPhase, HandlerOptions, Outcome, Registration, SharedController,
    SharedControllerFactory,
};
use lariat_core::ObjectKey;
use lariat_lease::{Lease, Sharding};
use tokio::task::JoinSet;
use tokio::time;

use crate::bench::{Bench, Calls, SECOND, key, recorder, settle};
use crate::ending_runs::{Overlaps, is_pending};
use crate::sharding_bench::client;

const STATES: [&str; 5] = ["resting", "syncing", "standby", "running", "draining"];

/// Each event, with the states that follow those in `STATES`.
const EVENTS: [(&str, [&str; 5]); 10] = [
    (
        "register",
        ["running", "syncing", "standby", "running", "draining"],
    ),
    (
        "deregister",
        ["-", "resting", "resting", "resting", "draining"],
    ),
    ("pause", ["-", "syncing", "standby", "running", "draining"]),
    (
        "stop",
        ["draining", "stopped", "stopped", "stopped", "draining"],
    ),
    (
        "dropped stop",
        ["draining", "stopped", "stopped", "stopped", "draining"],
    ),
    (
        "start",
        ["resting", "syncing", "standby", "running", "draining"],
    ),
    ("panic in task", ["-", "-", "-", "running", "-"]),
    (
        "informer ends",
        ["resting", "syncing", "standby", "running", "draining"],
    ),
    ("lease lost", ["resting", "-", "-", "running", "stopped"]),
    ("revocation", ["resting", "-", "-", "running", "draining"]),
];

/// A process that handles ConfigMaps.
struct Process {
    bench: Bench,
    factory: SharedControllerFactory,
    config_maps: SharedController<ConfigMap>,
    old: Option<Registration>,
    /// Starts and stops that wait.
    tasks: JoinSet<()>,
}

/// Builds the factory of a replica, in a ring or an election.
pub(crate) fn factory(bench: &Bench, name: &'static str, is_ring: bool) -> SharedControllerFactory {
    let builder = SharedControllerFactory::builder(client(&bench.cluster, name));
    let builder = builder.grace_period(5 * SECOND);
    let lease = Lease::new("shop").identity(name);
    if is_ring {
        let ring = Sharding::new(lease).drain_timeout(2 * SECOND);
        builder.sharding(ring).build()
    } else {
        builder.leader_election(lease).build()
    }
}

impl Process {
    /// Brings a kind into a state.
    async fn in_state(state: &str, is_ring: bool) -> Self {
        let bench = Bench::new().await;
        let factory = factory(&bench, "one", is_ring);
        let config_maps = factory.for_object::<ConfigMap>();
        let (_, handler) = recorder(|call| async move {
            if call.name == "hangs" {
                std::future::pending::<()>().await;
            }
            Ok(Outcome::done())
        });
        let old = config_maps.register_handler("old", handler);
        let mut process = Self {
            bench,
            factory,
            config_maps,
            old: Some(old.expect("registered")),
            tasks: JoinSet::new(),
        };
        process.enter(state).await;
        assert_eq!(process.state(), state);
        process
    }

    async fn enter(&mut self, state: &str) {
        let faults = self.bench.cluster.faults();
        match state {
            "syncing" => {
                let refused = Action::Refuse(Refusal::too_many_requests());
                faults.add(Rule::new(refused).resource("configmaps").client("one"));
            }
            "standby" => {
                faults.block_leases("one");
            }
            _ => {}
        }
        self.start();
        time::sleep(5 * SECOND).await;
        match state {
            "resting" => {
                self.bench.create("hangs").await;
                settle().await;
                self.deregister().await;
            }
            "draining" => {
                self.bench.create("hangs").await;
                settle().await;
                self.stop();
                settle().await;
            }
            _ => {}
        }
    }

    fn start(&mut self) {
        let factory = self.factory.clone();
        self.tasks
            .spawn(async move { drop(factory.start(1).await) });
    }

    fn stop(&mut self) {
        let factory = self.factory.clone();
        self.tasks.spawn(async move { drop(factory.stop().await) });
    }

    async fn deregister(&mut self) {
        let old = self.old.take().expect("it is deregistered once");
        let _ = time::timeout(SECOND / 10, old.deregister()).await;
    }

    /// Returns the state of the kind, as far as it shows.
    fn state(&self) -> &'static str {
        match *self.factory.phases().borrow() {
            FactoryPhase::Stopping => return "draining",
            FactoryPhase::Running => {}
            _ => return "stopped",
        }
        let status = self.config_maps.status();
        match status.filter(|status| !status.handlers.is_empty()) {
            None => "resting",
            Some(status) if status.workers.is_some() => "running",
            Some(status) if status.cache.phase == lariat_cache::Phase::Synced => "standby",
            Some(_) => "syncing",
        }
    }

    async fn meet(&mut self, event: &str) -> Option<SharedControllerFactory> {
        match event {
            "register" => drop(self.register("another", HandlerOptions::default())),
            "deregister" => self.deregister().await,
            "pause" => drop(self.config_maps.pause("old").expect("it is registered")),
            "stop" => self.stop(),
            "dropped stop" => assert!(is_pending(&mut Box::pin(self.factory.stop()))),
            "start" => self.start(),
            "panic in task" => {
                let stream = HandlerOptions::default().enqueued_by(Enqueue::now(), || Mined);
                let mined = self.register("mined", stream);
                settle().await;
                mined.deregister().await;
                // The state begins again after a pause.
                time::sleep(2 * SECOND).await;
            }
            "informer ends" => {
                self.factory.caches().stop().await;
                self.factory.caches().start();
            }
            "lease lost" => {
                self.bench.cluster.faults().block_leases("one");
                time::sleep(30 * SECOND).await;
            }
            "revocation" => {
                let two = factory(&self.bench, "two", true);
                let (_, handler) = recorder(|_| async { Ok(Outcome::done()) });
                let config_maps = two.for_object::<ConfigMap>();
                config_maps
                    .register_handler("old", handler)
                    .expect("registered");
                two.start(1).await.expect("started");
                time::sleep(SECOND).await;
                return Some(two);
            }
            other => unreachable!("{other}"),
        }
        settle().await;
        None
    }

    fn register(&self, name: &str, options: HandlerOptions) -> Registration {
        let (_, handler) = recorder(|_| async { Ok(Outcome::done()) });
        let handler = options.handler(handler);
        let registered = self.config_maps.register_handler(name, handler);
        registered.expect("the name is free")
    }

    /// Registers a handler that counts calls that overlap.
    fn probe(&self) -> (Calls, Overlaps) {
        let overlaps = Overlaps::default();
        let counted = overlaps.clone();
        let (calls, handler) = recorder(move |_| {
            let counted = counted.clone();
            async move {
                counted.call(SECOND).await;
                Ok(Outcome::done())
            }
        });
        let registered = self.config_maps.register_handler("probe", handler);
        drop(registered.expect("the name is free"));
        (calls, overlaps)
    }

    /// Starts the factory if it does not run, and checks that a new handler is called once for each object.
    async fn check(mut self, cell: &str) {
        self.bench.cluster.faults().clear();
        time::sleep(60 * SECOND).await;
        let is_lost = !is_pending(&mut Box::pin(self.factory.lease_lost()));
        if is_lost {
            let _ = self.factory.stop().await;
        }
        if self.old.is_some() {
            self.deregister().await;
        }
        self.start();
        time::sleep(60 * SECOND).await;
        let (calls, overlaps) = self.probe();
        for name in ["a", "b", "c"] {
            self.bench.create(name).await;
        }
        time::sleep(60 * SECOND).await;
        let mut names = calls.names();
        names.retain(|name| name != "hangs");
        names.sort();
        assert_eq!(names, ["a", "b", "c"], "{cell}");
        assert_eq!(overlaps.most(), 1, "{cell}");
        let status = self.config_maps.status().expect("it is in use");
        assert_eq!(status.workers, Some(1), "{cell}");
        let _ = self.factory.stop().await;
        assert!(self.config_maps.in_progress().is_empty(), "{cell}");
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("no panic");
        }
    }
}

/// A stream without keys, whose drop panics.
struct Mined;

impl Stream for Mined {
    type Item = ObjectKey;

    fn poll_next(self: Pin<&mut Self>, _: &mut Polling<'_>) -> Poll<Option<ObjectKey>> {
        Poll::Pending
    }
}

impl Drop for Mined {
    fn drop(&mut self) {
        panic!("the stream is mined");
    }
}

#[tokio::test(start_paused = true)]
async fn kind_in_any_state_survives_any_event() {
    for (event, following) in EVENTS {
        for (state, next) in STATES.into_iter().zip(following) {
            if next == "-" {
                continue;
            }
            let cell = format!("{event} while {state}");
            let mut process = Process::in_state(state, event == "revocation").await;
            let other = process.meet(event).await;
            assert_eq!(process.state(), next, "{cell}");
            if let Some(other) = other {
                let _ = other.stop().await;
            }
            process.check(&cell).await;
        }
    }
}

/// A handler may still be registered for the enqueued key.
#[tokio::test(start_paused = true)]
async fn kind_that_only_an_enqueue_uses_is_dropped_after_a_minute_in_any_state() {
    for state in ["syncing", "standby", "running"] {
        let mut process = Process::in_state(state, false).await;
        process.deregister().await;
        process.config_maps.enqueue(&key("a"));
        time::sleep(59 * SECOND).await;
        assert!(process.config_maps.status().is_some(), "{state}");
        time::sleep(3 * SECOND).await;
        assert!(process.config_maps.status().is_none(), "{state}");
        process.check(state).await;
    }
}
