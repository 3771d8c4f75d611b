//! Measures the cost of a record for its caller, in processor time, and how many fit into a file of the usual size.
//!
//! ```text
//! cargo run --profile dist --package lariat-flight --example cost
//! ```

use std::fs;
use std::time::Duration;

use lariat_flight::{
    CallEnd, CauseType, ChangeType, Controlled, FlightRecorder, LaneVerdict, LineType, Queued,
    Record, Recorder, Recording, Reflected, Stored, Urgency, VerdictType, Version,
};
use smallvec::smallvec;

/// How many objects there are.
const KEYS: usize = 10_000;

/// How many changes are recorded in a round, so few that none is dropped before it is written.
const CHANGES: usize = 10_000;

const ROUNDS: usize = 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("cost-{}.flight", std::process::id()));
    let recorder = Recorder::new(FlightRecorder::file(&path));
    let keys: Vec<String> = (0..KEYS).map(|at| format!("shop/web-{at}")).collect();
    let (mut recording, mut writing, mut records) = (Duration::ZERO, Duration::ZERO, 0);
    for round in 0..ROUNDS {
        let began = processor_time();
        for change in 0..CHANGES {
            let run = (round * CHANGES + change) as u64;
            let records_of_change = records_of(&keys[(7919 * change) % KEYS], run);
            records_of_change
                .iter()
                .for_each(|each| recorder.record(each));
            records += records_of_change.len();
        }
        let recorded = processor_time();
        recorder.flush_in_place();
        recording += recorded - began;
        writing += processor_time() - recorded;
    }
    drop(recorder);
    let per_record = |time: Duration| time.as_nanos() as f64 / records as f64;
    println!("{:.0} ns to make a record", per_record(recording));
    println!("{:.0} ns to write it, on another task", per_record(writing));
    let read = Recording::read(&path)?;
    let kept = read.entries().count();
    let bytes = fs::metadata(&path)?.len();
    println!("{kept} of {records} records are in {bytes} bytes");
    println!("{:.1} bytes a record", bytes as f64 / kept as f64);
    fs::remove_file(&path)?;
    Ok(())
}

/// Returns how long this thread has been on a processor, which other work of the machine does not change much.
fn processor_time() -> Duration {
    let figures = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanos = figures
        .split(' ')
        .next()
        .and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("the first figure is a number"))
}

const KIND: &str = "v1 ConfigMap";

/// Returns the records of a change of an object with two handlers.
fn records_of(key: &str, run: u64) -> [Record<'_>; 9] {
    let [line, change] = cached(key, run);
    let [added, dequeued, finished] = queued(key, run);
    let ([began, ended], [began_too, ended_too]) =
        (called("sync", key, run), called("report", key, run));
    [
        line, change, added, dequeued, began, ended, began_too, ended_too, finished,
    ]
}

fn version(run: u64) -> Version<'static> {
    Version::Number(1_000_000 + run)
}

fn cached(key: &str, run: u64) -> [Record<'_>; 2] {
    let line = Reflected::Line {
        line: LineType::Modified,
        key,
        uid: run as u32,
        version: version(run),
    };
    let changed = Stored::Changed {
        change: ChangeType::Updated,
        key,
        version: version(run),
    };
    [
        Record::Reflector {
            kind: KIND,
            reflector: 1,
            what: line,
        },
        Record::Store {
            kind: KIND,
            what: changed,
        },
    ]
}

fn queued(key: &str, run: u64) -> [Record<'_>; 3] {
    let added = Queued::Added {
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
        version: version(run),
    };
    let dequeued = Queued::Dequeued {
        key,
        lanes: smallvec![u32::MAX],
        priority: Urgency::Normal,
        waited: Duration::from_micros(15),
    };
    let done = |lane| LaneVerdict {
        lane,
        what: VerdictType::Done,
        after: Duration::ZERO,
        priority: None,
    };
    let finished = Queued::Finished {
        key,
        verdicts: smallvec![done(1), done(2)],
    };
    [added, dequeued, finished].map(|what| Record::Queue {
        kind: KIND,
        queue: 1,
        what,
    })
}

fn called<'a>(handler: &'a str, key: &'a str, run: u64) -> [Record<'a>; 2] {
    let began = Controlled::CallBegan {
        run,
        key,
        handler,
        lane: 1,
        attempt: 1,
    };
    let ended = Controlled::CallEnded {
        run,
        key,
        handler,
        end: CallEnd::Done,
        took: Duration::from_micros(120),
        again: None,
    };
    [began, ended].map(|what| Record::Controller { kind: KIND, what })
}
