//! Watches as server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use tokio::time::{self, Interval, MissedTickBehavior, Sleep};
use tokio_util::sync::CancellationToken;

use super::revisions::Shown;
use super::room::RoomPermit;
use super::status::Refusal;
use crate::row::sound;
use crate::watch::{Watch, WatchError, WatchEvent};

/// How many milliseconds after the end of a watch a client reconnects.
const RETRY: u32 = 1_000;

/// The settings of a watch beside its query.
#[derive(Debug)]
pub(super) struct Terms {
    /// How often a heartbeat is sent.
    pub(super) heartbeat: Duration,
    /// The time after which the watch ends; `None` for never.
    pub(super) longest: Option<Duration>,
    pub(super) stopping: CancellationToken,
    /// How the user sees revisions.
    pub(super) shown: Shown,
    /// The permit of the watch, until it ends.
    pub(super) place: RoomPermit,
}

/// A watch that is being sent; it makes progress only while its client reads.
struct Events {
    watch: Watch,
    beats: Interval,
    end: Option<Pin<Box<Sleep>>>,
    stopping: CancellationToken,
    is_over: bool,
    shown: Shown,
    /// The highest resource version of the objects that were sent.
    seen: u64,
    _place: RoomPermit,
}

/// Returns the body that sends a watch.
pub(super) fn body(watch: Watch, terms: Terms) -> Body {
    // The first heartbeat is sent immediately, so that the client has a revision to resume from.
    let mut beats = time::interval(terms.heartbeat);
    // A slow client gets no burst of heartbeats.
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let events = Events {
        watch,
        beats,
        end: terms.longest.map(|longest| Box::pin(time::sleep(longest))),
        stopping: terms.stopping,
        is_over: false,
        shown: terms.shown,
        seen: 0,
        _place: terms.place,
    };
    let body = stream::unfold(events, |mut events| async {
        let sent = events.next().await?;
        Some((Ok::<_, Infallible>(sent), events))
    });
    Body::from_stream(body)
}

impl Events {
    /// Waits for the next part to send.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let ended = async {
            match &mut self.end {
                Some(end) => end.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.stopping.cancelled() => None,
            () = ended => None,
            event = self.watch.next() => match event? {
                Ok(event) => Some(self.written(&event)),
                // The program is stopping.
                Err(WatchError::Stopped { .. }) => None,
                Err(error) => {
                    self.is_over = true;
                    let status = Refusal::from(error).status().to_string();
                    Some(format!("data: {{\"type\":\"ERROR\",\"object\":{status}}}\n\n").into())
                }
            },
            // An id without data moves the client past changes that it does not see.
            _ = self.beats.tick() => {
                let revision = self.shown.text(self.watch.revision(), self.seen);
                Some(format!(": alive\nretry: {RETRY}\nid: {revision}\n\n").into())
            }
        }
    }

    fn written(&mut self, event: &WatchEvent) -> Bytes {
        let what = match event {
            WatchEvent::Added(_) => "ADDED",
            WatchEvent::Modified(_) => "MODIFIED",
            WatchEvent::Deleted(_) => "DELETED",
        };
        let watched = event.watched();
        self.seen = self
            .seen
            .max(watched.object.version().number().unwrap_or_default());
        let revision = self.shown.text(watched.revision, self.seen);
        let stored = watched.object.json().unwrap_or_default();
        let json = sound(&stored);
        let head = format!("id: {revision}\ndata: {{\"type\":\"{what}\",\"object\":");
        let mut text = Vec::with_capacity(head.len() + json.len() + 3);
        text.extend_from_slice(head.as_bytes());
        // A line break would end the data. In JSON it is never part of a string.
        text.extend(json.iter().map(|byte| match byte {
            b'\n' | b'\r' => b' ',
            byte => *byte,
        }));
        text.extend_from_slice(b"}\n\n");
        text.into()
    }
}
