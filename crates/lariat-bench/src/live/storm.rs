//! The storm: many changes at once, until every handler has seen the last state of every pod.

use anyhow::Result;
use tokio::time;

use super::{SETTLING, sync};
use crate::bench::Run;
use crate::meter::{self, Meter};
use crate::process::{hear, say};
use crate::report::Row;

pub(super) async fn measure(run: &Run, url: &str) -> Result<Row> {
    let mut row = run.row();
    let job = super::job(run, url);
    let (_live, sync_cpu) = sync::fill(&mut row, &job).await?;
    say("ready")?;
    // Meanwhile the server makes the changes, and publishes none of them.
    let floor = tokio::task::spawn_blocking(|| hear("go")).await??;
    // With fewer changes than pods only the first pods change.
    let changing = row.n.min(run.pods.unwrap_or(0));
    job.tally.begin(floor.parse()?, changing);
    row.before_rss_mb = Some(meter::resident_mb());
    meter::forget_peak()?;
    let meter = Meter::begin();
    say("going")?;
    job.tally.all_seen().await;
    (row.wall_s, row.cpu_s) = meter.seconds();
    row.peak_rss_mb = Some(meter::peak_mb());
    row.handler_runs = Some(job.tally.runs());
    row.ops_per_s = row.n as f64 / row.wall_s;
    row.sync_cpu_s = Some(sync_cpu);
    row.bytes_per_object = None;
    time::sleep(SETTLING).await;
    row.steady_rss_mb = Some(meter::resident_mb());
    Ok(row)
}
