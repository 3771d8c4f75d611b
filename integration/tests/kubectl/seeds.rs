//! Random seeds of comparisons with kubectl.
//!
//! Each test compares one seed, which is the same in each run, or as many as fit into `LARIAT_KUBECTL_SECONDS`;
//! `scripts/kubectl-fuzz.sh` sets it. These follow from `LARIAT_KUBECTL_FROM`, or else are random.
//! `LARIAT_KUBECTL_SEED` is the one seed to repeat.

use std::time::Duration;

use anyhow::{Context, Result};
use fastrand::Rng;
use tokio::time::Instant;

/// Calls a comparison with seeds.
///
/// Each is printed before its call, so that the last one belongs to the failure.
pub(super) async fn with_seeds(compare: impl AsyncFn(u64) -> Result<()>) -> Result<()> {
    if let Some(seed) = number("LARIAT_KUBECTL_SEED")? {
        return compare(seed).await;
    }
    let seconds = Duration::from_secs(number("LARIAT_KUBECTL_SECONDS")?.unwrap_or(0));
    let from = number("LARIAT_KUBECTL_FROM")?.or(seconds.is_zero().then_some(1));
    let mut seeds = from.map_or_else(Rng::new, Rng::with_seed);
    let end = Instant::now() + seconds;
    loop {
        let seed = seeds.u64(..1 << 40);
        println!("to repeat it: LARIAT_KUBECTL_SEED={seed}");
        compare(seed).await?;
        if Instant::now() >= end {
            return Ok(());
        }
    }
}

fn number(variable: &str) -> Result<Option<u64>> {
    let given = std::env::var(variable).ok().filter(|text| !text.is_empty());
    let number = given.map(|text| text.parse()).transpose();
    number.with_context(|| format!("{variable} is not a number"))
}
