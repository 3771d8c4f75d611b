//! Latency: from when the server writes a change until handlers have it.
//!
//! Both stamps are read from one clock: the server's when it hands a line to the connection, a subject's
//! when its handler has the typed pod. kube-rs enters its handlers with it; Lariat decodes it inside, when
//! the first handler asks, so that this is part of the time too. With several handlers each counts. The floor's is read
//! when a line has arrived, with `floor-scan` after the pass over its JSON.
//!
//! A genuine server stamps nothing. There the first stamp is of when the request of the change was sent, so that the
//! server's part is in every time, the floor's too: what a subject adds is the difference from the floor.

use anyhow::{Result, ensure};

use super::job::{MOST_CHANGES, PODS, fits};
use super::sync;
use crate::bench::Run;
use crate::meter::Meter;
use crate::options::Options;
use crate::process::{hear, say};
use crate::report::Row;
use crate::subjects::Job;
use crate::target::Target;

/// Probes alone, or among many other changes.
pub(crate) const CASES: [&str; 2] = ["idle", "load"];

/// The first four are run by default.
pub(crate) const SUBJECTS: [&str; 12] = [
    "lariat",
    "kube-rs",
    "floor",
    "floor-scan",
    "floor-http1",
    "floor-http2",
    "floor-one-thread",
    "kube-rs-shared",
    "lariat-http1",
    "lariat-http2",
    "lariat-decoded",
    "lariat-one-thread",
];

/// Probes a second; ten seconds of them are a run.
const PROBE_RATE: usize = 200;
const PROBE_COUNT: usize = 2_000;

/// Changes a second under load; a genuine server cannot write as many.
const LOAD_RATE: usize = 20_000;
const GENUINE_LOAD_RATE: usize = 600;

/// The most changes to a probe: what a run needs at the server stays below 2 GB, whatever the rate.
const MOST_CROWD: usize = 100;

/// Returns the runs that were asked for.
pub(crate) fn plan(options: &Options) -> Vec<Run> {
    let or = |asked: &[usize], usual: &[usize]| {
        if asked.is_empty() {
            usual.to_vec()
        } else {
            asked.to_vec()
        }
    };
    let subjects = if options.subjects.is_empty() {
        SUBJECTS[..4].iter().map(|&name| name.to_owned()).collect()
    } else {
        options.subjects.clone()
    };
    let load = match options.genuine {
        Some(_) => GENUINE_LOAD_RATE,
        None => LOAD_RATE,
    };
    let mut runs = Vec::new();
    for n in or(&options.n, &[PROBE_COUNT]) {
        for case in options.chosen_cases() {
            let rates = match case {
                "idle" => vec![PROBE_RATE],
                _ => or(&options.rates, &[load]),
            };
            for rate in rates {
                for handlers in or(&options.handlers, &[1, 10]) {
                    let run = |subject: &String| Run {
                        bench: options.bench.name.to_owned(),
                        case: case.to_owned(),
                        subject: subject.clone(),
                        n: Some(n),
                        handlers: Some(handlers),
                        pods: Some(options.pods.unwrap_or(PODS)),
                        rate: Some(rate),
                    };
                    runs.extend(subjects.iter().map(run).map(shortened).filter(fits));
                }
            }
        }
    }
    runs
}

/// Reduces the probes for kube-rs with a watch per handler, as storms do.
fn shortened(mut run: Run) -> Run {
    if run.subject == "kube-rs" && run.handlers > Some(1) {
        // The other changes of the crowd are read by each watch as well.
        let most = (MOST_CHANGES / crowd(&run)).max(1);
        run.n = run.n.map(|n| n.min(most));
    }
    run
}

/// Returns how many changes there are for each probe, itself among them.
pub(crate) fn crowd(run: &Run) -> usize {
    let rate = run.rate.unwrap_or(PROBE_RATE);
    (rate / PROBE_RATE).clamp(1, MOST_CROWD)
}

pub(super) async fn measure(run: &Run, target: &Target) -> Result<Row> {
    let mut row = run.row();
    let job = Job {
        case: "typed",
        is_stamped: true,
        ..super::job::job(run, target)
    };
    // What the row says is about the probes alone.
    let (_live, sync_cpu) = sync::fill(&mut run.row(), &job).await?;
    say("ready")?;
    // Meanwhile the server makes the changes, and publishes none of them.
    tokio::task::spawn_blocking(|| hear("go")).await??;
    // Before the server releases the changes: a probe that came earlier would be missed.
    job.tally.begin_probes(row.n);
    let meter = Meter::begin();
    say("going")?;
    job.tally.all_seen().await?;
    (row.wall_s, row.cpu_s) = meter.seconds();
    // A handler that missed a state, since a later one came first, would make the times look better.
    let latencies = job.tally.latencies();
    ensure!(
        latencies.len() == row.n * job.tally.handlers(),
        "each handler sees each probe once"
    );
    row.spread(latencies);
    row.handler_runs = Some(job.tally.runs());
    row.ops_per_s = (row.n * crowd(run)) as f64 / row.wall_s;
    row.sync_cpu_s = Some(sync_cpu);
    Ok(row)
}
