//! How long credentials of plugins are valid.

use std::time::Duration;

use tokio::time::Instant;

/// How long before its expiry the credential of an exec plugin is renewed.
///
/// A credential that is valid for less than four times as long is renewed after three quarters of its lifetime.
const MARGIN: Duration = Duration::from_secs(60);

/// The lifetime of a credential; without times it does not expire.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Life {
    /// When it is renewed.
    renews: Option<Instant>,
    /// When it expires.
    expires: Option<Instant>,
}

impl Life {
    /// Returns the lifetime of a credential that is valid from now for so long.
    pub(super) fn of(lasts: Option<Duration>) -> Self {
        let after = |delay: Duration| Instant::now().checked_add(delay);
        Self {
            renews: lasts.and_then(|lasts| after(lasts - MARGIN.min(lasts / 4))),
            expires: lasts.and_then(after),
        }
    }

    pub(super) fn is_due(&self) -> bool {
        self.renews.is_some_and(|at| at <= Instant::now())
    }

    pub(super) fn has_expired(&self) -> bool {
        self.expires.is_some_and(|at| at <= Instant::now())
    }
}
