//! Runs of the work queue.

use std::sync::Arc;

use anyhow::{Result, bail};

use super::load::{Delayed, Key, PACE, keys};
use super::{kube_rs, lariat};
use crate::bench::Run;
use crate::meter::{self, Meter};
use crate::options::Options;
use crate::report::Row;

pub(crate) const CASES: [&str; 6] = [
    "distinct-1x1",
    "distinct-4x4",
    "hot-4x4",
    "delayed",
    "delayed-paced",
    "memory",
];

pub(crate) const SUBJECTS: [&str; 4] = ["lariat", "lariat-causes", "kube-rs", "kube-rs-applier"];

/// Keys of the hot case.
const HOT_KEYS: usize = 1000;

/// How many distinct keys the applier is given at most.
const MOST_APPLIED: usize = 50_000;

/// Returns who takes part in a case: kube-rs' scheduler is its queue, its applier has retries too.
fn subjects(case: &str) -> &'static [&'static str] {
    match case {
        "distinct-1x1" => &SUBJECTS,
        "memory" => &SUBJECTS[..3],
        "hot-4x4" => &["lariat", "kube-rs", "kube-rs-applier"],
        _ => &["lariat", "kube-rs"],
    }
}

/// Returns the runs that were asked for.
pub(crate) fn plan(options: &Options) -> Vec<Run> {
    let n: Vec<Option<usize>> = if options.n.is_empty() {
        vec![None]
    } else {
        options.n.iter().copied().map(Some).collect()
    };
    let is_wanted = |subject: &&&str| {
        let mut wanted = options.subjects.iter();
        options.subjects.is_empty() || wanted.any(|wanted| wanted == **subject)
    };
    let mut runs = Vec::new();
    for &n in &n {
        for case in options.chosen_cases() {
            for subject in subjects(case).iter().filter(is_wanted) {
                let run = |rate: Option<usize>| Run {
                    bench: options.bench.name.to_owned(),
                    case: case.to_owned(),
                    subject: (*subject).to_owned(),
                    n,
                    handlers: None,
                    pods: None,
                    rate,
                };
                runs.extend(rates(options, case).into_iter().map(run));
            }
        }
    }
    runs
}

/// Returns the rates of a case, in adds a second; none is as fast as possible.
fn rates(options: &Options, case: &str) -> Vec<Option<usize>> {
    match case {
        "delayed-paced" if options.rates.is_empty() => vec![Some(PACE)],
        "delayed-paced" => options.rates.iter().copied().map(Some).collect(),
        _ => vec![None],
    }
}

/// Runs one subject once.
pub(crate) fn run(run: &Run) -> Result<Row> {
    let (case, subject) = (run.case.as_str(), run.subject.as_str());
    let n = match (case, subject) {
        // Its cost per key grows with the number of keys that wait.
        ("distinct-1x1", "kube-rs-applier") => run.n.unwrap_or(MOST_APPLIED).min(MOST_APPLIED),
        _ => run.n.unwrap_or(default_n(case)),
    };
    let mut row = Row { n, ..run.row() };
    match (case, subject) {
        ("distinct-1x1", "lariat") => row.time(|| lariat::one_thread::<()>(keys(n))),
        ("distinct-1x1", "lariat-causes") => {
            row.time(|| lariat::one_thread::<lariat::Causes>(keys(n)));
        }
        ("distinct-1x1", "kube-rs") => row.time(|| kube_rs::one_thread(keys(n))),
        ("distinct-1x1", "kube-rs-applier") => row.time(|| kube_rs::applier(&keys(n), n)),
        ("distinct-4x4", "lariat") => row.time(|| lariat::many(keys(n), n)),
        ("distinct-4x4", "kube-rs") => row.time(|| kube_rs::many(keys(n), n)),
        ("hot-4x4", "lariat") => row.time(|| lariat::many(keys(HOT_KEYS), n)),
        ("hot-4x4", "kube-rs") => row.time(|| kube_rs::many(keys(HOT_KEYS), n)),
        ("hot-4x4", "kube-rs-applier") => row.time(|| kube_rs::applier(&keys(HOT_KEYS), n)),
        ("delayed" | "delayed-paced", "lariat") => row.lateness(lariat::delayed, n),
        ("delayed" | "delayed-paced", "kube-rs") => row.lateness(kube_rs::delayed, n),
        ("memory", "lariat") => row.memory(lariat::wait::<()>, n),
        ("memory", "lariat-causes") => row.memory(lariat::wait::<lariat::Causes>, n),
        ("memory", "kube-rs") => row.memory(kube_rs::wait, n),
        _ => bail!("no case {case:?} of {subject:?}; --help lists them"),
    }
    row.peak_rss_mb = Some(meter::peak_mb());
    Ok(row)
}

fn default_n(case: &str) -> usize {
    match case {
        "hot-4x4" => 2_000_000,
        "delayed" => 100_000,
        "delayed-paced" => 40_000,
        _ => 1_000_000,
    }
}

impl Row {
    fn finish(&mut self, meter: &Meter) {
        (self.wall_s, self.cpu_s) = meter.seconds();
        self.ops_per_s = self.n as f64 / self.wall_s;
    }

    /// Measures a run, whose preparation is not counted.
    fn time<R: FnOnce()>(&mut self, prepare: impl FnOnce() -> R) {
        // Keys, runtimes and stores are made here, which is not what is compared.
        let run = prepare();
        let meter = Meter::begin();
        run();
        self.finish(&meter);
    }

    /// Measures how late delayed keys come.
    fn lateness(&mut self, run: impl FnOnce(&Arc<Delayed>), n: usize) {
        let delayed = Arc::new(Delayed::new(n, self.rate));
        let meter = Meter::begin();
        run(&delayed);
        self.finish(&meter);
        let late = delayed.lateness().into_iter();
        self.spread(late.map(|late| late.as_secs_f64() * 1e6).collect());
    }

    /// Measures what waiting keys hold beyond themselves.
    fn memory<Q>(&mut self, fill: impl FnOnce(Vec<Key>) -> Q, n: usize) {
        let keys = keys(n);
        // The queue holds clones of these, so that the texts are not counted.
        let copies = keys.clone();
        // After the keys and their copies were made, which are not the queue's.
        let before = meter::resident_mb();
        let meter = Meter::begin();
        let queue = fill(copies);
        self.finish(&meter);
        let held = (meter::resident_mb() - before).max(0.0);
        // The vector of copies is gone by now: its 16 bytes a key make up for the key in the queue.
        self.bytes_per_key = Some(held * 1e6 / n as f64);
        drop((queue, keys));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn paced_adds_follow_each_other_and_others_are_made_at_once() {
        for (rate, expected) in [(Some(1_000), 9), (None, 0)] {
            let (begun, mut added) = (time::Instant::now(), Vec::new());
            let delayed = Delayed::new(10, rate);
            delayed.feed(|key, _| added.push(key)).await;
            assert_eq!(added, keys(10));
            assert_eq!(begun.elapsed(), Duration::from_millis(expected), "{rate:?}");
        }
    }
}
