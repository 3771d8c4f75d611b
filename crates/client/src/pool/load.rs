//! The requests of a connection: how many it has, and whether it accepts another.

use std::time::Duration;

use tokio::time::Instant;

use super::health::Health;
use crate::request::Length;

/// How many requests share a connection at most.
///
/// The flow-control windows are sized for that many.
const SHARED_BY: usize = 100;

/// How long a connection may be idle, unless it is the only one.
const IDLE_FOR: Duration = Duration::from_secs(90);

/// The requests of a connection.
pub(super) struct Load {
    brief: usize,
    lasting: usize,
    /// The limit that follows from refused streams.
    most: usize,
    /// Whether it accepts no more requests, and is closed when the last one has ended.
    is_retired: bool,
    idle_since: Instant,
    health: Health,
}

impl Load {
    pub(super) fn new() -> Self {
        Self {
            brief: 0,
            lasting: 0,
            most: SHARED_BY,
            is_retired: false,
            idle_since: Instant::now(),
            health: Health::default(),
        }
    }

    pub(super) fn used(&self) -> usize {
        self.brief + self.lasting
    }

    pub(super) fn claim(&mut self, length: Length, limit: usize) -> bool {
        let limit = limit.min(self.most);
        let kept_free = match length {
            Length::Brief => 0,
            Length::Lasting => reserve(limit).saturating_sub(self.brief),
        };
        if self.is_retired || self.health.is_replaced() || self.used() + kept_free >= limit {
            return false;
        }
        match length {
            Length::Brief => self.brief += 1,
            Length::Lasting => self.lasting += 1,
        }
        true
    }

    /// Records that a request has ended.
    pub(super) fn give_back(&mut self, length: Length) {
        match length {
            Length::Brief => self.brief -= 1,
            Length::Lasting => self.lasting -= 1,
        }
        if self.used() == 0 {
            self.idle_since = Instant::now();
        }
    }

    pub(super) fn health(&mut self) -> &mut Health {
        &mut self.health
    }

    /// Returns whether an idle connection is kept for further requests.
    pub(super) fn waits(&self, has_another: bool) -> bool {
        !self.is_retired
            && !self.health.is_replaced()
            && (!has_another || self.idle_since.elapsed() < IDLE_FOR)
    }

    /// Accepts no more requests.
    pub(super) fn retire(&mut self) {
        self.is_retired = true;
    }

    /// Records that the server refused a stream.
    pub(super) fn refused(&mut self) {
        self.most = self.used().saturating_sub(1);
        self.is_retired |= self.most == 0;
    }
}

/// Returns how many slots watches leave to other requests.
///
/// Otherwise every other request would need a further connection.
fn reserve(limit: usize) -> usize {
    if limit > 1 { limit.div_ceil(10) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how many requests of a length a connection takes.
    fn taken(load: &mut Load, length: Length, limit: usize) -> usize {
        (0..1_000).take_while(|_| load.claim(length, limit)).count()
    }

    #[tokio::test]
    async fn connection_full_of_watches_keeps_places_for_other_requests() {
        for (limit, watches, others) in [(1, 1, 0), (2, 1, 1), (20, 18, 2), (250, 90, 10)] {
            let mut load = Load::new();
            assert_eq!(taken(&mut load, Length::Lasting, limit), watches, "{limit}");
            assert_eq!(taken(&mut load, Length::Brief, limit), others, "{limit}");
        }
    }

    #[tokio::test]
    async fn short_requests_use_all_places_and_leave_none_idle() {
        let mut load = Load::new();
        assert_eq!(taken(&mut load, Length::Brief, 20), 20);
        for _ in 0..10 {
            load.give_back(Length::Brief);
        }
        assert_eq!(taken(&mut load, Length::Lasting, 20), 10);
    }

    #[tokio::test]
    async fn refused_request_is_not_sent_to_its_connection_again() {
        let mut load = Load::new();
        assert_eq!(taken(&mut load, Length::Brief, 100), 100);
        load.refused();
        load.give_back(Length::Brief);
        assert!(!load.claim(Length::Brief, 100), "it had 99 when it refused");
        load.give_back(Length::Brief);
        assert!(load.claim(Length::Brief, 100));
    }
}
