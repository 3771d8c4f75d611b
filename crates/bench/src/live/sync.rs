//! The initial sync: from the start until every handler has seen every pod.

use anyhow::Result;
use tokio::time;

use super::job::SETTLING;
use crate::bench::Run;
use crate::meter::{self, Meter};
use crate::report::Row;
use crate::subjects;
use crate::subjects::{Job, Live};
use crate::target::Target;

pub(super) async fn measure(run: &Run, target: &Target) -> Result<Row> {
    let mut row = run.row();
    let (_live, _) = fill(&mut row, &super::job::job(run, target)).await?;
    Ok(row)
}

/// Starts a subject and measures its sync; returns it and the CPU time.
pub(super) async fn fill(row: &mut Row, job: &Job<'_>) -> Result<(Live, f64)> {
    let meter = Meter::begin();
    let live = subjects::start(job).await?;
    job.tally.all_seen().await?;
    (row.wall_s, row.cpu_s) = meter.seconds();
    // After the times were read: what is released late counts for memory, but not for the sync.
    time::sleep(SETTLING).await;
    row.peak_rss_mb = Some(meter::peak_mb());
    row.steady_rss_mb = Some(meter::resident_mb());
    row.bytes_per_object = live
        .bytes
        .as_ref()
        .map(|bytes| bytes() as f64 / row.n as f64);
    row.ops_per_s = row.n as f64 / row.wall_s;
    let cpu = row.cpu_s;
    Ok((live, cpu))
}
