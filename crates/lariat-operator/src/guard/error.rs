//! What a write fails with that a guard refused.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::debug_as_description;
use tokio::time::Instant;

use super::state::Trip;

/// A write that a [`Guard`](super::Guard) refused; it was not sent.
///
/// kube's methods return it inside of [`kube::Error::Service`]; [`find`](Self::find) finds it there.
#[derive(thiserror::Error)]
#[error("the guard of handler {handler} refused to {write}: {why}; {then}")]
pub struct GuardError {
    handler: String,
    write: String,
    why: Arc<str>,
    then: String,
    /// When the guard resets itself, if it does.
    until: Option<Instant>,
}

debug_as_description!(GuardError);

/// How long a reconciler waits that somebody has to do something about: with many keys that is a steady trickle of
/// attempts, none of which sends anything, and soon enough after a reset.
const UNTIL_SOMEBODY_ACTS: Duration = Duration::from_secs(60);

impl GuardError {
    pub(super) fn tripped(handler: &str, write: String, trip: &Trip, now: Instant) -> Self {
        let left = trip.until().map(|until| until.duration_since(now));
        Self {
            handler: handler.to_owned(),
            write,
            why: Arc::clone(trip.why_shared()),
            then: match left {
                Some(left) => format!("tripped for another {left:?}"),
                None => "tripped until it is reset".to_owned(),
            },
            until: trip.until(),
        }
    }

    pub(super) fn unknown(handler: &str, write: String) -> Self {
        Self {
            handler: handler.to_owned(),
            write,
            why: "how many objects it deletes is not known, for no cache that is filled holds all of them".into(),
            then: "cache all objects of the kind, or delete them one by one".to_owned(),
            until: None,
        }
    }

    pub(super) fn no_weight(handler: &str, write: String) -> Self {
        Self {
            handler: handler.to_owned(),
            write,
            why: "it takes along all that is in it, which no budget counts".into(),
            then: "say as how many objects that is to count (`Guard::weight`)".to_owned(),
            until: None,
        }
    }

    /// Finds the error of a guard among an error and its causes.
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut chain = std::iter::successors(Some(error), |each: &&'a (dyn Error + 'static)| {
            (**each).source()
        });
        chain.find_map(|each| each.downcast_ref())
    }

    /// Returns when it is worth another try: when the guard resets itself, or, where somebody has to do something about
    /// it, in a minute. Reconcilers are called again by then, unless their [policy](crate::Reconciler::on_error) says
    /// otherwise.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        let left = self.until.map(|until| until.duration_since(Instant::now()));
        left.unwrap_or(UNTIL_SOMEBODY_ACTS)
    }
}
