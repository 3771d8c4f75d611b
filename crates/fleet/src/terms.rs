//! The leases that a run of a fleet needs.

use std::sync::Arc;

use futures::future::select_all;
use kube::Client;
use lariat_lease::{Leadership, Term};

use crate::error::FleetError;
use crate::fleet::FleetState;

/// The terms in which a run writes, one of each lease.
#[derive(Clone)]
pub(crate) struct Terms(Arc<[Held]>);

/// A lease and the term in which this process has acquired it.
struct Held {
    leadership: Leadership,
    term: Term,
}

impl Terms {
    /// Waits until this process has the leases of a fleet.
    pub(crate) async fn begun(fleet: &FleetState) -> Result<Self, FleetError> {
        let mut held = Vec::new();
        for leadership in leaderships(fleet)? {
            if !leadership.acquired().await {
                return Err(lost(&leadership));
            }
            let term = leadership.term();
            held.push(Held { leadership, term });
        }
        Ok(Self(held.into()))
    }

    /// Creates a client that sends writes only in all of the terms.
    pub(crate) fn fence(&self, client: Client) -> Client {
        let held = self.0.iter();
        held.fold(client, |client, each| each.term.fence(client))
    }

    /// Waits until one of the terms is over; for ever without leases.
    pub(crate) async fn over(&self) -> FleetError {
        let over = |each: &'_ Held| {
            let (term, error) = (each.term.clone(), lost(&each.leadership));
            Box::pin(async move {
                term.over().await;
                error
            })
        };
        let all: Vec<_> = self.0.iter().map(over).collect();
        if all.is_empty() {
            return std::future::pending().await;
        }
        select_all(all).await.0
    }
}

/// Returns the leaderships of the factory that fences a fleet, and of its hubs.
fn leaderships(fleet: &FleetState) -> Result<Vec<Leadership>, FleetError> {
    let mut all = Vec::new();
    if let Some(factory) = &fleet.fenced_by {
        // The members of a ring all lead.
        let elected = factory.leadership().filter(|_| factory.shards().is_none());
        all.push(elected.ok_or(FleetError::NoElection)?);
    }
    let sources = fleet.sources.iter();
    all.extend(sources.filter_map(|source| source.leadership()));
    Ok(all)
}

fn lost(leadership: &Leadership) -> FleetError {
    let lease = leadership.lease().to_owned();
    FleetError::Lost { lease }
}
