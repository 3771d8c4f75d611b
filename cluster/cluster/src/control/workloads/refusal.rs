//! Back-off of controllers whose objects are refused.
//!
//! Source: `slowStartBatch` and the rate limiters of the controllers in `k8s.io/kubernetes/pkg/controller`.

use std::time::Duration;

use super::kind::Kind;
use crate::status::ApiError;

/// The error of an object that was not created.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) is_taken: bool,
    /// Its namespace is being deleted, which makes every further creation futile.
    pub(super) is_end: bool,
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self {
            message: error.message().to_owned(),
            is_taken: error.is_already_exists(),
            is_end: error.is_namespace_terminating(),
        }
    }
}

/// Creates objects in batches of which each is twice as large as the one before; ends with a batch that has a failure.
///
/// So what would refuse all of them refuses a few. Returns the first failure.
pub(super) fn slow_start(
    count: usize,
    mut create: impl FnMut() -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let (mut left, mut batch) = (count, 1);
    while left > 0 {
        batch = batch.min(left);
        let mut outcome = Ok(());
        for _ in 0..batch {
            outcome = outcome.and(create());
        }
        outcome?;
        left -= batch;
        batch *= 2;
    }
    Ok(())
}

/// Returns how long a controller waits after a number of failures in a row.
pub(super) fn delay(kind: Kind, failures: u32) -> Duration {
    let (first, most) = match kind {
        // `DefaultJobApiBackOff` and `MaxJobApiBackOff`.
        Kind::Job => (Duration::from_secs(1), Duration::from_secs(60)),
        // `DefaultTypedControllerRateLimiter`.
        _ => (Duration::from_millis(5), Duration::from_secs(1000)),
    };
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1));
    first.saturating_mul(factor).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how often it was tried to create some objects, of which the first few are admitted.
    fn tries(count: usize, admitted: usize) -> (usize, bool) {
        let mut tries = 0;
        let outcome = slow_start(count, || {
            tries += 1;
            let refusal = || Refusal {
                message: tries.to_string(),
                is_taken: false,
                is_end: false,
            };
            (tries <= admitted).then_some(()).ok_or_else(refusal)
        });
        if let Err(first) = &outcome {
            assert_eq!(first.message, (admitted + 1).to_string());
        }
        (tries, outcome.is_ok())
    }

    #[test]
    fn batches_double_until_one_has_a_failure() {
        assert_eq!(tries(0, 0), (0, true));
        assert_eq!(tries(5, 0), (1, false));
        assert_eq!(tries(5, 2), (3, false));
        assert_eq!(tries(9, 3), (7, false));
        assert_eq!(tries(9, 9), (9, true));
    }

    #[test]
    fn delays_double_up_to_a_limit() {
        let millis = |kind, failures| delay(kind, failures).as_millis();
        assert_eq!([1, 2, 3].map(|n| millis(Kind::ReplicaSet, n)), [5, 10, 20]);
        assert_eq!(millis(Kind::DaemonSet, 50), 1_000_000);
        assert_eq!([1, 2].map(|n| millis(Kind::Job, n)), [1000, 2000]);
        assert_eq!(millis(Kind::Job, 9), 60_000);
    }
}
