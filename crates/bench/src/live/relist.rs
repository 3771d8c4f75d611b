//! The relist: a watch has expired, everything is read again, and hardly anything has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use tokio::time;

use super::job::SETTLING;
use super::sync;
use crate::bench::Run;
use crate::meter::{self, Meter};
use crate::process::{hear, say};
use crate::report::Row;
use crate::subjects::{Reader, Tally};
use crate::target::Target;

/// The pause between two looks of the reader, which must not load the processors.
const PAUSE: Duration = Duration::from_micros(200);

/// Handlers that were not called for this long are through.
const QUIET: Duration = Duration::from_millis(500);

pub(super) async fn measure(run: &Run, target: &Target) -> Result<Row> {
    let mut row = run.row();
    let job = super::job::job(run, target);
    let (live, sync_cpu) = sync::fill(&mut row, &job).await?;
    say("ready")?;
    let floor = tokio::task::spawn_blocking(|| hear("go")).await??;
    // Nothing but the last pod has changed.
    job.tally.begin(floor.parse()?, 1);
    row.before_rss_mb = Some(meter::resident_mb());
    let (reading, reader) = (Arc::new(AtomicBool::new(true)), (live.reader)());
    meter::forget_peak()?;
    let meter = Meter::begin();
    let goes_on = Arc::clone(&reading);
    // A thread of its own: a task might wait for a worker of the runtime, and not for the cache.
    let thread = thread::spawn(move || read(reader, &goes_on));
    say("going")?;
    job.tally.all_seen().await?;
    (row.wall_s, _) = meter.seconds();
    quiet(&job.tally).await;
    // After the handlers have come to rest: a subject may call them for every pod after a relist.
    let (_, cpu) = meter.seconds();
    reading.store(false, Ordering::Relaxed);
    let seen = thread.join().map_err(|_| anyhow!("the reader panicked"))?;
    // The reader belongs to the benchmark.
    row.cpu_s = cpu - seen.cpu;
    row.peak_rss_mb = Some(meter::peak_mb());
    row.handler_runs = Some(job.tally.runs());
    row.ops_per_s = row.n as f64 / row.wall_s;
    row.sync_cpu_s = Some(sync_cpu);
    row.bytes_per_object = None;
    row.longest_get_us = Some(micros(seen.get));
    row.longest_list_us = Some(micros(seen.list));
    row.blocked_us = Some(micros(seen.blocked));
    time::sleep(SETTLING).await;
    row.steady_rss_mb = Some(meter::resident_mb());
    Ok(row)
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Waits until no handler has been called for a while.
async fn quiet(tally: &Tally) {
    let mut before = tally.runs();
    loop {
        time::sleep(QUIET).await;
        let now = tally.runs();
        if now == before {
            return;
        }
        before = now;
    }
}

/// The longest looks of a reader.
#[derive(Default)]
struct Looks {
    get: Duration,
    list: Duration,
    /// The longest of both in which the thread gave up its processor by itself: it waited for a lock.
    /// A thread that is only pushed off it by another is not blocked.
    blocked: Duration,
    /// What the reading cost.
    cpu: f64,
}

fn read(mut reader: Reader, goes_on: &AtomicBool) -> Looks {
    let mut looks = Looks::default();
    while goes_on.load(Ordering::Relaxed) {
        let (get, waited_to_get) = look(&mut *reader.get);
        let (list, waited_to_list) = look(&mut *reader.list);
        looks.get = looks.get.max(get);
        looks.list = looks.list.max(list);
        for (took, waited) in [(get, waited_to_get), (list, waited_to_list)] {
            if waited {
                looks.blocked = looks.blocked.max(took);
            }
        }
        thread::park_timeout(PAUSE);
    }
    looks.cpu = meter::thread_seconds();
    looks
}

/// Looks once; returns how long it took, and whether it had to wait.
fn look(look: &mut (dyn FnMut() + Send)) -> (Duration, bool) {
    let before = meter::waits();
    let begun: Instant = meter::now();
    look();
    // Voluntary switches only: a busy machine takes the processor from a thread at any time.
    (meter::now() - begun, meter::waits() > before)
}
