//! The storm: many changes at once, until every handler has seen the last state of every pod.
//!
//! The embedded server has made all changes before it sends the first. A genuine one makes them during the run, and a
//! stamp marks the last state of a pod. The floor ends when every change has arrived.

use anyhow::Result;
use tokio::time;

use super::job::SETTLING;
use super::sync;
use crate::bench::Run;
use crate::meter::{self, Meter};
use crate::process::{hear, say};
use crate::report::Row;
use crate::subjects;
use crate::target::Target;

pub(super) async fn measure(run: &Run, target: &Target) -> Result<Row> {
    let mut row = run.row();
    let job = super::job::job(run, target);
    let (_live, sync_cpu) = sync::fill(&mut row, &job).await?;
    say("ready")?;
    // Meanwhile the server makes the changes, and publishes none of them.
    let floor = tokio::task::spawn_blocking(|| hear("go")).await??;
    // With fewer changes than pods only the first pods change.
    let changing = row.n.min(run.pods.unwrap_or(0));
    let is_floor = subjects::is_floor(&run.subject);
    if is_floor {
        job.tally.begin_now(row.n);
    } else if job.is_stamped {
        job.tally.begin_now(changing);
    } else {
        // Each pod changes once more after this version, so every handler must see each of them.
        job.tally.begin(floor.parse()?, changing);
    }
    row.before_rss_mb = Some(meter::resident_mb());
    // The initial sync has a higher peak than the storm.
    meter::forget_peak()?;
    let meter = Meter::begin();
    say("going")?;
    job.tally.all_seen().await?;
    (row.wall_s, row.cpu_s) = meter.seconds();
    row.peak_rss_mb = Some(meter::peak_mb());
    let runs = job.tally.runs();
    let calls = (row.n * job.tally.handlers()) as u64;
    row.handler_runs = Some(runs);
    row.merged = (!is_floor).then(|| calls.saturating_sub(runs));
    row.ops_per_s = row.n as f64 / row.wall_s;
    row.sync_cpu_s = Some(sync_cpu);
    // `fill` has set it for the sync.
    row.bytes_per_object = None;
    time::sleep(SETTLING).await;
    row.steady_rss_mb = Some(meter::resident_mb());
    Ok(row)
}
