//! The controllers of the control plane that run inside the cluster.

mod definitions;
mod names;
mod namespaces;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::server::Server;

/// Runs all controllers until the cluster stops.
///
/// They look at what is stored after every announcement of commits, so they cannot miss a change, and
/// a look at which nothing is to be done reads two small tables.
pub(crate) async fn run(server: Arc<Server>) {
    let mut commits = server.store.commits();
    let mut definitions = definitions::Definitions::default();
    loop {
        let seen = server.store.sequence();
        // A defect in one look must not end all later ones.
        let looks: [&mut dyn FnMut(); 2] = [&mut || definitions.reconcile(&server), &mut || {
            namespaces::reconcile(&server)
        }];
        for look in looks {
            if catch_unwind(AssertUnwindSafe(look)).is_err() {
                tracing::error!("the control plane panicked; it goes on with the next change");
            }
        }
        server.looked.send_replace(seen);
        tokio::select! {
            changed = commits.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = server.stopped.cancelled() => return,
        }
    }
}
