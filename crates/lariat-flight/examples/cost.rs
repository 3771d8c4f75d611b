//! Measures what a record costs whoever makes it, and how many bytes it takes.
//!
//! ```text
//! cargo run --release --package lariat-flight --example cost
//! ```

use std::fs;
use std::time::Duration;

use lariat_flight::{
    CallEnd, CauseType, Controlled, FlightRecorder, LaneVerdict, LineType, Queued, Record,
    Recorder, Recording, Reflected, Urgency, VerdictType, Version,
};
use smallvec::smallvec;
use tokio::time::Instant;

/// How many objects there are.
const KEYS: usize = 10_000;

/// How many changes are recorded in a round, so few that none is dropped before it is written.
const CHANGES: usize = 10_000;

const ROUNDS: usize = 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("cost-{}.flight", std::process::id()));
    let recorder = Recorder::new(FlightRecorder::file(&path).bytes(64 << 20));
    let keys: Vec<String> = (0..KEYS).map(|at| format!("shop/web-{at}")).collect();
    let (mut recording, mut writing, mut records) = (Duration::ZERO, Duration::ZERO, 0);
    for round in 0..ROUNDS {
        let began = Instant::now();
        for change in 0..CHANGES {
            let run = (round * CHANGES + change) as u64;
            let records_of_change = records_of(&keys[(7919 * change) % KEYS], run);
            records_of_change
                .iter()
                .for_each(|each| recorder.record(each));
            records += records_of_change.len();
        }
        let recorded = Instant::now();
        recorder.flush_in_place();
        recording += recorded - began;
        writing += recorded.elapsed();
    }
    drop(recorder);
    let per_record = |time: Duration| time.as_nanos() as f64 / records as f64;
    println!("{:.0} ns to make a record", per_record(recording));
    println!("{:.0} ns to write it, on another task", per_record(writing));
    let read = Recording::read(&path)?;
    let kept = read.entries().count();
    let bytes = fs::metadata(&path)?.len();
    println!("{kept} of {records} records are in {bytes} bytes");
    fs::remove_file(&path)?;
    Ok(())
}

/// Returns the records of a change of an object with two handlers.
fn records_of(key: &str, run: u64) -> [Record<'_>; 9] {
    let kind = "v1 ConfigMap";
    let version = Version::Number(1_000_000 + run);
    let queue = |what| Record::Queue {
        kind,
        queue: 1,
        what,
    };
    let controller = |what| Record::Controller { kind, what };
    let began = |handler| {
        controller(Controlled::CallBegan {
            run,
            key,
            handler,
            attempt: 1,
        })
    };
    let ended = |handler| {
        controller(Controlled::CallEnded {
            run,
            key,
            handler,
            end: CallEnd::Done,
            took: Duration::from_micros(120),
            again: None,
        })
    };
    let done = |lane| LaneVerdict {
        lane,
        what: VerdictType::Done,
        after: Duration::ZERO,
        priority: None,
    };
    [
        Record::Reflector {
            kind,
            reflector: 1,
            what: Reflected::Line {
                line: LineType::Modified,
                key,
                uid: run as u32,
                version,
            },
        },
        Record::Store {
            kind,
            what: lariat_flight::Stored::Changed {
                change: lariat_flight::ChangeType::Updated,
                key,
                version,
            },
        },
        queue(Queued::Added {
            key,
            lanes: smallvec![u32::MAX],
            after: Duration::ZERO,
            kept: false,
            priority: Urgency::Normal,
            failures: 0,
            limited: None,
            group: None,
            cause: CauseType::Updated,
            by: "",
            version,
        }),
        queue(Queued::HandedOut {
            key,
            lanes: smallvec![u32::MAX],
            priority: Urgency::Normal,
            waited: Duration::from_micros(15),
        }),
        began("sync"),
        ended("sync"),
        began("report"),
        ended("report"),
        queue(Queued::Finished {
            key,
            verdicts: smallvec![done(1), done(2)],
        }),
    ]
}
