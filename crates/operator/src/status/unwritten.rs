//! Logs conditions that cannot be written, less often the more there are.

use std::collections::BTreeMap;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey, describe};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::StatusError;
use crate::wire::ApiError;

/// The time without failures after which a success means recovery.
///
/// A success alone means little: writes that fail in one namespace may succeed in another.
const QUIET: Duration = Duration::from_secs(60);

/// The number of errors that are counted separately; others are counted together.
const MOST: usize = 16;

/// The failed writes of one reconciler's condition, since the last recovery.
#[derive(Debug, Default)]
pub(super) struct Unwritten(Mutex<BTreeMap<String, Failures>>);

#[derive(Debug)]
struct Failures {
    count: u64,
    last: Instant,
}

impl Unwritten {
    /// Logs a failed write as a warning: for each error the first, second, fourth and so on.
    pub(super) fn failed(&self, kind: &Gvk, key: &ObjectKey, condition: &str, error: &StatusError) {
        let times = self.count(error);
        let error = describe(error);
        if times.is_power_of_two() {
            tracing::warn!(%kind, %key, condition, error, times, "cannot write a condition");
        } else {
            tracing::debug!(%kind, %key, condition, error, times, "cannot write a condition");
        }
    }

    /// Counts an error, whatever object it is about.
    fn count(&self, error: &StatusError) -> u64 {
        let mut all = self.0.lock();
        // Counted by class, not by object: one missing permission fails for every object with another text.
        let mut class = class_of(error);
        if all.len() >= MOST && !all.contains_key(&class) {
            "others".clone_into(&mut class);
        }
        let failures = all.entry(class).or_insert(Failures {
            count: 0,
            last: Instant::now(),
        });
        failures.count += 1;
        failures.last = Instant::now();
        failures.count
    }

    /// Logs the recovery, if writes have failed and none has failed for a while.
    pub(super) fn written(&self, kind: &Gvk, condition: &str) {
        let mut all = self.0.lock();
        if all.is_empty() {
            return;
        }
        let mut times = 0;
        all.retain(|_, failures| {
            let is_over = failures.last.elapsed() >= QUIET;
            times += if is_over { failures.count } else { 0 };
            !is_over
        });
        drop(all);
        if times > 0 {
            tracing::info!(%kind, condition, times, "conditions are written again");
        }
    }
}

/// Returns the class of an error, without the name of the object.
fn class_of(error: &StatusError) -> String {
    match error {
        StatusError::Api(ApiError::Refused { source, .. }) => match &**source {
            kube::Error::Api(status) => format!("{} {}", status.code, status.reason),
            source => describe(source),
        },
        StatusError::Api(error) => format!("{:?}", std::mem::discriminant(error)),
        error => format!("{:?}", std::mem::discriminant(error)),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time;

    use super::*;

    fn refused(name: &str, code: u16, reason: &str) -> StatusError {
        let gvk = Gvk::new("demo.dev", "v1", "Widget");
        let status = kube::core::Status::failure(&format!("{name} is refused"), reason);
        let source = kube::Error::Api(status.with_code(code).boxed());
        let key = ObjectKey::namespaced("default", name);
        ApiError::refused("patch", &gvk, &key, source).into()
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_counted_over_all_objects_until_all_is_well() {
        let (unwritten, kind) = (Unwritten::default(), Gvk::new("demo.dev", "v1", "Widget"));
        assert_eq!(unwritten.count(&refused("a", 403, "Forbidden")), 1);
        assert_eq!(unwritten.count(&refused("b", 403, "Forbidden")), 2);
        assert_eq!(unwritten.count(&refused("a", 503, "Unavailable")), 1);
        // Writes in another namespace succeed meanwhile.
        unwritten.written(&kind, "Ready");
        assert_eq!(unwritten.count(&refused("c", 403, "Forbidden")), 3);
        time::advance(QUIET).await;
        unwritten.written(&kind, "Ready");
        assert_eq!(unwritten.count(&refused("a", 403, "Forbidden")), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn errors_without_end_are_counted_together() {
        let unwritten = Unwritten::default();
        for number in 0..u16::try_from(MOST).unwrap() {
            assert_eq!(unwritten.count(&refused("a", number, "")), 1);
        }
        assert_eq!(unwritten.count(&refused("a", 900, "")), 1);
        assert_eq!(unwritten.count(&refused("a", 901, "")), 2);
        assert_eq!(unwritten.0.lock().len(), MOST + 1);
    }
}
