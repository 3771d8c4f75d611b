//! Probes: changes whose way to the handlers is timed, alone or in a crowd of other changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use tokio::task::JoinSet;

use super::fill::{Filler, TASKS};

/// One change.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Of this pod, which tells when it was written.
    Probe(usize),
    /// Of this pod, which is never a probe.
    Other(usize),
}

/// Changes each of the first pods once as a probe, and other pods around each of these changes, so that so
/// many changes belong to each probe, itself among them.
pub(super) async fn probe(filler: &Arc<Filler>, probes: usize, crowd: usize) -> Result<()> {
    let others = filler.pods().saturating_sub(probes);
    ensure!(
        filler.pods() >= probes && (crowd == 1 || others > 0),
        "too few pods for {probes} probes"
    );
    let script: Arc<[Step]> = script(filler.pods(), probes, crowd).into();
    // Tasks take steps in turn, so that these stay in order but for a neighbour or two.
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (filler, script, next) = (Arc::clone(filler), Arc::clone(&script), Arc::clone(&next));
        tasks.spawn(async move {
            while let Some(step) = script.get(next.fetch_add(1, Ordering::Relaxed)) {
                match *step {
                    Step::Probe(pod) => filler.change_stamped(pod).await?,
                    Step::Other(pod) => filler.change(pod, 0).await?,
                };
            }
            anyhow::Ok(())
        });
    }
    tasks.join_all().await.into_iter().collect()
}

fn script(pods: usize, probes: usize, crowd: usize) -> Vec<Step> {
    let mut steps = Vec::with_capacity(probes * crowd);
    let mut others = (probes..pods).cycle().map(Step::Other);
    for probe in 0..probes {
        // At a place of its own among the others: what is due within a millisecond goes out together,
        // and probes must not always be the last to go.
        let place = fastrand::usize(..crowd);
        steps.extend(others.by_ref().take(place));
        steps.push(Step::Probe(probe));
        steps.extend(others.by_ref().take(crowd - place - 1));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_is_another_pod_and_has_its_crowd() {
        let steps = script(10, 4, 5);
        assert_eq!(steps.len(), 20);
        for (probe, steps) in steps.chunks(5).enumerate() {
            let probes: Vec<usize> = steps.iter().filter_map(probed).collect();
            assert_eq!(probes, [probe]);
        }
        assert_eq!(script(3, 3, 1).iter().filter_map(probed).count(), 3);
    }

    fn probed(step: &Step) -> Option<usize> {
        match *step {
            Step::Probe(pod) => Some(pod),
            Step::Other(pod) => {
                assert!(pod >= 4, "{pod} is a probe");
                None
            }
        }
    }
}
