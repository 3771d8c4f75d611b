//! Watches that begin with everything there is.

use std::time::Duration;

use lariat_core::describe;
use lariat_flight::{Reflected, Stage};
use tokio::time::Instant;

use super::error::ReflectorError;
use super::policy::Ending;
use super::stream::WatchStream;
use super::watch::{Cursor, watch_timeout};
use super::{Failure, Reflector, Step};

/// How long a watch that begins with everything there is may show nothing new, before it is taken for
/// one that never says where that ends.
pub(super) const INITIAL_SILENCE: Duration = Duration::from_secs(10);

impl Reflector {
    /// Watches from the beginning: everything there is, then what happens.
    ///
    /// Where the server cannot do that, or never says where the beginning ends, lists are used for a while.
    pub(super) async fn stream(&mut self) -> Result<Step, Failure> {
        self.record(|_| Reflected::StreamBegan {});
        let timeout = watch_timeout();
        // Before the request: what is written meanwhile need not be in the answer.
        let loading = self.begin_loading();
        let request = self.request(self.queries.stream(timeout), true);
        let response = match self.open(request).await {
            Ok(response) => response,
            Err(error) => return self.without_streaming(error, Duration::ZERO),
        };
        self.progress.watch_opened();
        let stream = WatchStream::new(response.into_body(), self.patience.with(timeout));
        let mut cursor = Cursor::new(timeout);
        (cursor.loading, cursor.news) = (Some(loading), Some(Instant::now()));
        self.follow(stream, cursor).await
    }

    /// Says what follows a stream that did not get as far as its marker.
    pub(super) fn without_streaming(
        &mut self,
        error: ReflectorError,
        lasted: Duration,
    ) -> Result<Step, Failure> {
        let decision = self.decide_after(&Ending {
            stage: Stage::Stream,
            end: error.end(),
            received: false,
            lasted,
        });
        if !decision.is_failure {
            let kind = self.progress.gvk();
            tracing::debug!(%kind, error = %describe(&error), "lists are used instead of streams");
            self.progress.reconnects(error.reason());
            return Ok(Step::Load);
        }
        let (next, delay) = (Step::Load, decision.delay);
        Err(Failure { error, next, delay })
    }
}
