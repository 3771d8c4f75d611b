//! The overview, made once for all who ask within a moment.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::state::ServerState;
use crate::api::{Allowed, Overview};
use crate::view;

/// How long an overview is used again.
const FRESH: Duration = Duration::from_millis(500);

/// The last overview, without what users may do; locked while one is made.
pub(super) type Overviews = Mutex<Option<(Instant, Arc<Overview>)>>;

/// Returns an overview that is at most half a second old.
pub(super) async fn recent(state: &ServerState) -> Arc<Overview> {
    let mut last = state.overviews.lock().await;
    if let Some((at, overview)) = &*last
        && at.elapsed() < FRESH
    {
        return Arc::clone(overview);
    }
    let overview = Arc::new(make(state).await);
    *last = Some((Instant::now(), Arc::clone(&overview)));
    overview
}

/// Forgets the last overview, after something was changed.
pub(super) async fn forget(state: &ServerState) {
    *state.overviews.lock().await = None;
}

async fn make(state: &ServerState) -> Overview {
    let members = &state.members;
    let health = state.checkup.health().await;
    let (controllers, hot_loops) = view::controllers(members, &state.samples);
    let nobody = Allowed {
        user: String::new(),
        actions: false,
    };
    Overview {
        program: state.program(),
        health,
        allowed: nobody,
        controllers,
        caches: view::caches(members),
        leases: view::leases(members),
        shards: view::shards(members),
        guards: view::guards(members),
        hot_loops,
        planned: view::planned(members),
    }
}
