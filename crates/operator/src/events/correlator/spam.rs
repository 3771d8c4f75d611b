//! The limit of the Events about an object, as token buckets.

use std::time::Duration;

use tokio::time::Instant;

use super::recent::Recent;

/// A duration that never ends in practice, and can still be added to an instant.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Token buckets by key.
#[derive(Debug)]
pub(super) struct SpamFilter {
    burst: u32,
    refill: Duration,
    buckets: Recent<Bucket>,
}

/// The bucket of a key, as the time at which it is full again.
///
/// This needs no counter, and no timer to refill it.
#[derive(Debug)]
struct Bucket {
    full_at: Instant,
}

impl SpamFilter {
    pub(super) fn new(burst: u32, refill: Duration, capacity: usize) -> Self {
        Self {
            burst,
            refill: refill.min(NEVER),
            buckets: Recent::new(capacity),
        }
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Takes a token of a key, and returns whether there was one.
    pub(super) fn admits(&mut self, key: &str, now: Instant) -> bool {
        if self.refill.is_zero() {
            return true;
        }
        // A burst of zero admits nothing.
        let Some(most) = self.burst.checked_sub(1) else {
            return false;
        };
        let bucket = self.buckets.entry(key, || Bucket { full_at: now });
        let missing = bucket.full_at.saturating_duration_since(now);
        if missing > self.refill.saturating_mul(most) {
            return false;
        }
        // Overflows only with a burst of billions.
        let full_at = now.checked_add(missing.saturating_add(self.refill));
        bucket.full_at = full_at.unwrap_or(bucket.full_at);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A naive token bucket, which counts tokens one by one.
    fn naive(burst: u32, refill: u64, at: &[u64]) -> Vec<bool> {
        let (mut tokens, mut last) = (f64::from(burst), 0);
        let mut admitted = Vec::new();
        for &now in at {
            #[allow(clippy::cast_precision_loss, reason = "small numbers")]
            let refilled = (now - last) as f64 / refill as f64;
            tokens = (tokens + refilled).min(f64::from(burst));
            last = now;
            admitted.push(tokens >= 1.0 - 1e-9);
            tokens -= if tokens >= 1.0 - 1e-9 { 1.0 } else { 0.0 };
        }
        admitted
    }

    #[test]
    fn it_admits_what_a_bucket_of_tokens_admits() {
        let random = fastrand::Rng::with_seed(7);
        for round in 0..200 {
            let mut random = random.clone();
            random.seed(round);
            let (burst, refill) = (random.u32(0..5), random.u64(1..20));
            let mut now = 0;
            let at: Vec<u64> = (0..60)
                .map(|_| {
                    now += random.u64(0..12);
                    now
                })
                .collect();
            let start = Instant::now();
            let mut filter = SpamFilter::new(burst, Duration::from_secs(refill), 10);
            let admits = |at: &u64| filter.admits("a", start + Duration::from_secs(*at));
            let admitted: Vec<bool> = at.iter().map(admits).collect();
            assert_eq!(admitted, naive(burst, refill, &at), "round {round}");
        }
    }

    #[test]
    fn keys_have_tokens_of_their_own_and_no_refill_is_no_limit() {
        let now = Instant::now();
        let mut filter = SpamFilter::new(1, Duration::from_secs(1), 10);
        assert!(filter.admits("a", now) && filter.admits("b", now));
        assert!(!filter.admits("a", now));
        let mut filter = SpamFilter::new(0, Duration::ZERO, 10);
        assert!(filter.admits("a", now));
    }
}
