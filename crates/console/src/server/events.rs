//! The overview as server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use lariat_http::User;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{self, Interval, MissedTickBehavior, Sleep};

use super::state::ServerState;

/// How often an overview is sent.
const PERIOD: Duration = Duration::from_secs(1);
/// The maximum duration of a stream whose user is reviewed.
///
/// The client connects again, and its permission is checked again.
const LONGEST: Duration = Duration::from_secs(60);

/// A stream of overviews. It makes progress only while its client reads, so a slow client is sent fewer overviews.
struct Events {
    state: Arc<ServerState>,
    user: User,
    ticks: Interval,
    end: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

/// Returns a body that sends an overview each second, until the server stops.
pub(super) fn body(state: Arc<ServerState>, user: User, place: OwnedSemaphorePermit) -> Body {
    let mut ticks = time::interval(PERIOD);
    // A client that reads slowly must not get a burst of overviews.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let is_reviewed = state.access.is_reviewed();
    let events = Events {
        state,
        user,
        ticks,
        // The other ways of access cannot be revoked while the program runs.
        end: is_reviewed.then(|| Box::pin(time::sleep(LONGEST))),
        _place: place,
    };
    let body = stream::unfold(events, |mut events| async {
        let sent = events.next().await?;
        Some((Ok::<_, Infallible>(sent), events))
    });
    Body::from_stream(body)
}

impl Events {
    /// Returns the next event; none at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        let ended = async {
            match &mut self.end {
                Some(end) => end.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.state.stopping.cancelled() => return None,
            () = ended => return None,
            _ = self.ticks.tick() => {}
        }
        let overview = self.state.overview(&self.user).await;
        // An event ends with a line break, so the JSON must have none.
        let json = serde_json::to_string(&overview).ok()?;
        Some(format!("event: overview\ndata: {json}\n\n").into())
    }
}
