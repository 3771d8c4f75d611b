//! The controllers of the control plane that run inside the cluster.
//!
//! One task runs them all. It takes every commit from the store, in order, and shows it to each
//! controller, which notes what it has to look at; then each does some of its work. So a commit costs
//! what it concerns, not the size of the store, and nothing runs while nothing happens: a timer is set
//! only while something is due.

mod defaults;
mod definitions;
mod expiry;
mod garbage;
mod graph;
mod metadata;
mod names;
mod namespaces;
mod switches;
mod workloads;
mod write;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::time::{self, Instant};

use crate::server::Server;
use crate::store::{Change, Changes, EventType};
use graph::Graph;

pub use switches::{Control, SimulatedWorkloads};
pub(crate) use switches::{Settings, Switches};

/// What the controllers work on.
pub(super) struct Plane {
    server: Arc<Server>,
    graph: Graph,
}

/// One controller. It never waits: what takes time is due later.
trait Controller: Send {
    /// Notes what a commit concerns.
    fn observe(&mut self, plane: &Plane, change: &Change);

    /// Does some of what is to be done now; tells whether there is more of it.
    fn work(&mut self, plane: &Plane) -> bool;

    /// Returns when there is something to do even if nothing is committed.
    fn due(&self, _plane: &Plane) -> Option<Instant> {
        None
    }

    /// Returns whether its work waits until it is switched on again.
    fn is_paused(&self, _plane: &Plane) -> bool {
        false
    }
}

/// Runs all controllers until the cluster stops.
pub(crate) async fn run(server: Arc<Server>) {
    let mut commits = server.store.commits();
    let mut plane = Plane {
        graph: Graph::default(),
        server: Arc::clone(&server),
    };
    server.store.replay_changes();
    let mut controllers = all_controllers(&plane);
    while !server.stopped.is_cancelled() {
        commits.borrow_and_update();
        let seen = server.store.sequence();
        if turn(&mut plane, &mut controllers) {
            tokio::task::yield_now().await;
            continue;
        }
        server.looked.send_replace(seen);
        let active = controllers.iter().filter(|each| !each.is_paused(&plane));
        let due = active.filter_map(|each| each.due(&plane)).min();
        let timer = async {
            match due {
                Some(at) => time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = commits.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = timer => {}
            () = server.switches.turned() => {}
            () = server.stopped.cancelled() => return,
        }
    }
}

fn all_controllers(plane: &Plane) -> Vec<Box<dyn Controller>> {
    let mut all: Vec<Box<dyn Controller>> = vec![
        Box::new(Definitions::new()),
        Box::new(namespaces::Namespaces::default()),
        Box::new(garbage::Collector::new(&plane.server)),
        Box::new(expiry::Expiry::new(&plane.server)),
    ];
    if plane.server.switches.makes_defaults() {
        all.push(Box::new(defaults::Defaults::new(&plane.server)));
    }
    if let Some(workloads) = &plane.server.workloads {
        all.push(Box::new(workloads::Simulation::new(workloads.clone())));
    }
    all
}

/// Shows what was committed to every controller, and lets each work; tells whether there is more to do.
fn turn(plane: &mut Plane, controllers: &mut Vec<Box<dyn Controller>>) -> bool {
    let Changes {
        anew,
        list: changes,
    } = plane.server.store.take_changes();
    if anew {
        plane.graph = Graph::default();
        *controllers = all_controllers(plane);
    }
    for change in &changes {
        plane.graph.observe(change);
    }
    let plane = &*plane;
    let mut more = !changes.is_empty();
    for controller in controllers {
        // A defect met by one controller must not end the others, nor its own later work.
        let step = AssertUnwindSafe(|| {
            for change in &changes {
                controller.observe(plane, change);
            }
            !controller.is_paused(plane) && controller.work(plane)
        });
        match catch_unwind(step) {
            Ok(has_more) => more |= has_more,
            Err(_) => {
                tracing::error!("the control plane panicked; it goes on with the next change");
            }
        }
    }
    more
}

/// The lifecycle of definitions, looked at when it may have moved.
#[derive(Debug)]
struct Definitions {
    definitions: definitions::Definitions,
    is_due: bool,
}

impl Definitions {
    fn new() -> Self {
        Self {
            definitions: definitions::Definitions::default(),
            // What was served before a rewind may have no definition any more.
            is_due: true,
        }
    }
}

impl Controller for Definitions {
    fn observe(&mut self, plane: &Plane, change: &Change) {
        // A definition that goes waits for its instances to be gone.
        self.is_due |= change.table == plane.server.kinds.definitions
            || (change.event.event == EventType::Deleted
                && self.definitions.waits_for(change.table));
    }

    fn work(&mut self, plane: &Plane) -> bool {
        let now = Instant::now();
        let is_time = self.definitions.due().is_some_and(|at| at <= now);
        if std::mem::take(&mut self.is_due) || is_time {
            self.definitions.reconcile(&plane.server);
        }
        false
    }

    fn due(&self, _plane: &Plane) -> Option<Instant> {
        self.definitions.due()
    }
}
