//! Changes in order. Some are probes: their way to the handlers is timed, alone or in a crowd of other changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use super::fill::Filler;
use crate::pods::stamp;

/// One change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeChange {
    /// Of this pod, which says when it was written.
    Probe(usize),
    /// Of this pod, which is never a probe.
    Other(usize),
}

/// How steps are carried out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// When each is due: the first at a time, and one more after each interval; none means at once.
    pub(super) due: Option<(Instant, Duration)>,
    /// What the stamp of a probe says: that it is to be filled in on its way out, or the time of the request.
    pub(super) is_stamped: bool,
}

/// Carries out steps. Tasks take them in turn, so that they stay in order but for a neighbour or two.
pub(super) async fn carry_out(
    filler: &Arc<Filler>,
    steps: Vec<ProbeChange>,
    pace: Pace,
) -> Result<()> {
    let steps: Arc<[ProbeChange]> = steps.into();
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..filler.tasks() {
        let (filler, steps, next) = (Arc::clone(filler), Arc::clone(&steps), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(step) = steps.get(place) else {
                    return anyhow::Ok(());
                };
                pace.wait(place).await;
                step.carry_out(&filler, pace.is_stamped).await?;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

impl Pace {
    /// Waits until the step at a place is due.
    async fn wait(&self, place: usize) {
        let Some((since, every)) = self.due else {
            return;
        };
        let due = since + every * u32::try_from(place).unwrap_or(u32::MAX);
        // A step that is late is carried out at once, and does not delay the next ones: the rate stays as asked for.
        if due > Instant::now() {
            time::sleep_until(due).await;
        }
    }
}

impl ProbeChange {
    async fn carry_out(self, filler: &Filler, is_stamped: bool) -> Result<u64> {
        match self {
            Self::Probe(pod) if is_stamped => filler.change_stamped(pod, &stamp::text()).await,
            Self::Probe(pod) => filler.change_stamped(pod, stamp::BLANK).await,
            Self::Other(pod) => filler.change(pod, 0).await,
        }
    }
}

/// Returns the changes of a storm, in rounds; those that are left over come first. In the last round each pod is a
/// probe once: all pods, or the first ones if there are fewer changes than pods.
pub(super) fn storm(pods: usize, changes: usize) -> Vec<ProbeChange> {
    let last = pods.min(changes);
    let before = changes - last;
    let left_over = (0..before % pods.max(1)).chain((0..pods).cycle());
    let others = left_over.take(before).map(ProbeChange::Other);
    others.chain((0..last).map(ProbeChange::Probe)).collect()
}

/// Returns the changes for a run: each of the first pods once, as a probe.
///
/// Around each probe other pods change, so that the given number of changes, the probe included, belongs to it.
///
/// # Errors
///
/// There are too few pods.
pub(super) fn script(pods: usize, probes: usize, crowd: usize) -> Result<Vec<ProbeChange>> {
    let others = pods.saturating_sub(probes);
    ensure!(
        pods >= probes && (crowd == 1 || others > 0),
        "{pods} pods are too few for {probes} probes (--n): each is another pod; --pods says how many there are"
    );
    let mut steps = Vec::with_capacity(probes * crowd);
    let mut others = (probes..pods).cycle().map(ProbeChange::Other);
    for probe in 0..probes {
        // At a place of its own among the others: what is due within a millisecond goes out together,
        // and probes must not always be the last to go.
        let place = fastrand::usize(..crowd);
        steps.extend(others.by_ref().take(place));
        steps.push(ProbeChange::Probe(probe));
        steps.extend(others.by_ref().take(crowd - place - 1));
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_is_another_pod_and_has_its_crowd() {
        let steps = script(10, 4, 5).unwrap();
        assert_eq!(steps.len(), 20);
        for (probe, steps) in steps.chunks(5).enumerate() {
            let probes: Vec<usize> = steps.iter().filter_map(probed).collect();
            assert_eq!(probes, [probe]);
        }
        assert_eq!(
            script(3, 3, 1).unwrap().iter().filter_map(probed).count(),
            3
        );
        assert!(script(3, 4, 1).is_err() && script(3, 3, 2).is_err());
    }

    #[test]
    fn every_pod_is_a_probe_in_the_last_round_of_a_storm() {
        let (other, probe) = (ProbeChange::Other, ProbeChange::Probe);
        let steps = [
            other(0),
            other(0),
            other(1),
            other(2),
            probe(0),
            probe(1),
            probe(2),
        ];
        assert_eq!(storm(3, 7), steps);
        assert_eq!(storm(3, 2), [probe(0), probe(1)]);
    }

    fn probed(step: &ProbeChange) -> Option<usize> {
        match *step {
            ProbeChange::Probe(pod) => Some(pod),
            ProbeChange::Other(pod) => {
                assert!(pod >= 4, "{pod} is a probe");
                None
            }
        }
    }
}
