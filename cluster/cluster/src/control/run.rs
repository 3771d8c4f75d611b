//! The task that runs all controllers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::time;

use super::aggregation::Aggregation;
use super::api_services::ApiServices;
use super::controller::{ControlPlane, Controller};
use super::crds::CrdController;
use super::flow_schemas::FlowSchemas;
use super::graph::Graph;
use super::protection::Protection;
use super::{compaction, defaults, expiry, garbage, namespaces, quotas, workloads};
use crate::server::Server;
use crate::store::Changes;

/// Runs all controllers until the cluster stops.
pub(crate) async fn run(server: Arc<Server>) {
    let mut commits = server.store.commits();
    let mut plane = ControlPlane {
        graph: Graph::default(),
        server: Arc::clone(&server),
    };
    // The store may come from a snapshot or a data file, whose objects nothing has observed.
    server.store.replay_changes();
    let mut controllers = all_controllers(&plane);
    while !server.stopped.is_cancelled() {
        // Marked as seen before the changes are taken: a commit after this wakes the loop, one before it is in the
        // changes.
        commits.borrow_and_update();
        // Read before the turn for the same reason: waiters for this sequence are notified only of changes that
        // were processed.
        let seen = server.store.sequence();
        if turn(&mut plane, &mut controllers) {
            // The control plane does not wait for anything while there is work; without this a current-thread runtime
            // would serve no client meanwhile.
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

fn all_controllers(plane: &ControlPlane) -> Vec<Box<dyn Controller>> {
    let mut all: Vec<Box<dyn Controller>> = vec![
        // First, so that the others see new kinds in the turn in which these get served.
        Box::new(CrdController::new()),
        Box::new(namespaces::Namespaces::new()),
        Box::new(garbage::Collector::new(&plane.server)),
        Box::new(expiry::Expiry::new(&plane.server)),
        Box::new(compaction::HistoryCompaction::default()),
        Box::new(ApiServices::new(&plane.server)),
        Box::new(FlowSchemas::new(&plane.server)),
    ];
    if plane.server.switches.aggregates_roles() {
        all.push(Box::new(Aggregation::new(&plane.server)));
    }
    if plane.server.switches.protects_volumes() {
        all.push(Box::new(Protection::new(&plane.server)));
    }
    if plane.server.switches.enforces_quotas() {
        all.push(Box::new(quotas::Quotas::new(&plane.server)));
    }
    if plane.server.switches.makes_defaults() {
        all.push(Box::new(defaults::Defaults::new(&plane.server)));
    }
    if let Some(simulated) = &plane.server.workloads {
        all.push(workloads::controller(simulated));
    }
    all
}

/// Shows commits to all controllers and runs them; returns whether more is due.
fn turn(plane: &mut ControlPlane, controllers: &mut Vec<Box<dyn Controller>>) -> bool {
    let Changes {
        is_complete,
        list: changes,
    } = plane.server.store.take_changes();
    // After a restored snapshot the changes are all objects; what the controllers know may contradict them.
    if is_complete {
        plane.graph = Graph::default();
        *controllers = all_controllers(plane);
    }
    // The graph is brought up to date by all changes before any controller acts: a collector that saw an owner go
    // before its new dependents were linked would miss them.
    for change in &changes {
        plane.graph.observe(change);
    }
    let plane = &*plane;
    // After changes there is another turn, for what the controllers commit in this one.
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
