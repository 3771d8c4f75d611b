//! What a reader makes of a file, whole or damaged.

use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::record::tests::draw;
use crate::{Controlled, FactoryStep, FlightRecorder, Recorder};

/// A folder of the test's own, which is removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("lariat-flight-{}-{}", std::process::id(), fastrand::u64(..));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("op.flight")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn recorder(path: &Path) -> Recorder {
    Recorder::new(FlightRecorder::file(path).bytes(0))
}

/// Records calls with these numbers.
fn record(recorder: &Recorder, runs: impl IntoIterator<Item = u64>) {
    for run in runs {
        recorder.record(&call(run));
    }
}

fn call(run: u64) -> Record<'static> {
    let what = Controlled::CallBegan {
        run,
        key: "shop/web-0",
        handler: "log",
        lane: 0,
        attempt: 1,
    };
    let kind = "Pod";
    Record::Controller { kind, what }
}

/// Returns the numbers of the calls in a recording.
fn runs(recording: &Recording) -> Vec<u64> {
    let run = |entry: RecordingEntry<'_>| match entry.body {
        EntryBody::Record(Record::Controller {
            what: Controlled::CallBegan { run, .. },
            ..
        }) => Some(run),
        _ => None,
    };
    recording.entries().filter_map(run).collect()
}

fn notes(recording: &Recording) -> Vec<EntryBody<'_>> {
    let all = recording.entries().map(|entry| entry.body);
    all.filter(|what| !matches!(what, EntryBody::Record(_)))
        .collect()
}

/// Writes frames of three calls each, and returns the bytes up to the end of the last.
fn written(frames: u64) -> Vec<u8> {
    let folder = Folder::new();
    let recorder = recorder(&folder.file());
    for frame in 0..frames {
        record(&recorder, 3 * frame..3 * frame + 3);
        recorder.flush_in_place();
    }
    let mut bytes = fs::read(folder.file()).unwrap();
    let (at, last) = frame::find(&bytes).last().unwrap();
    let end = at + last.len();
    bytes.truncate(end);
    bytes
}

#[test]
fn a_file_that_ends_anywhere_has_all_frames_before_its_end() {
    let bytes = written(4);
    let ends: Vec<usize> = frame::find(&bytes).map(|(at, f)| at + f.len()).collect();
    for end in 0..bytes.len() {
        // Bytes that only fill a frame up may be missing.
        let whole = ends.iter().filter(|frame| **frame <= end + 7).count() as u64;
        match Recording::of(bytes[..end].to_vec()) {
            Ok(recording) => {
                let found = runs(&recording);
                assert_eq!(found, Vec::from_iter(0..found.len() as u64), "{end}");
                assert!(found.len() as u64 <= 3 * whole, "{end}");
                assert!(found.len() as u64 + 3 >= 3 * whole, "{end}");
            }
            Err(header) => assert!(
                whole <= 1 && matches!(header, Header::Empty | Header::Known { .. }),
                "{end}: {header:?}"
            ),
        }
    }
}

#[test]
fn a_byte_that_is_wrong_costs_one_frame_at_most() {
    let bytes = written(4);
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0xA5;
        let recording = match Recording::of(bytes) {
            Ok(recording) => recording,
            Err(Header::Later { .. }) if (8..12).contains(&at) => continue,
            Err(header) => panic!("{at}: {header:?}"),
        };
        let found = runs(&recording);
        let lost = (0..4).find(|frame| !found.contains(&(3 * frame)));
        let of_others = |run: &u64| Some(*run / 3) != lost;
        assert_eq!(found, Vec::from_iter((0..12).filter(of_others)), "{at}");
        // It says so where others follow, and where none was before there is nothing to miss it by.
        let is_between = lost.is_some_and(|frame| frame == 1 || frame == 2);
        let missing = EntryBody::Missing { frames: 1 };
        assert_eq!(notes(&recording) == [missing], is_between, "{at}");
    }
}

#[test]
fn any_bytes_in_place_of_some_are_survived() {
    let bytes = written(3);
    for at in (0..bytes.len()).step_by(3) {
        let mut bytes = bytes.clone();
        let len = (bytes.len() - at).min(fastrand::usize(1..90));
        bytes[at..at + len].fill_with(|| fastrand::u8(..));
        if let Ok(recording) = Recording::of(bytes) {
            assert!(runs(&recording).len() <= 9);
        }
    }
}

#[test]
fn the_ring_comes_round_and_stays_as_large_as_it_is() {
    let folder = Folder::new();
    let recorder = recorder(&folder.file());
    for frame in 0..200 {
        record(&recorder, 100 * frame..100 * frame + 100);
        recorder.flush_in_place();
        if frame % 9 != 0 {
            continue;
        }
        assert_eq!(fs::metadata(folder.file()).unwrap().len(), 64 << 10);
        let recording = Recording::read(&folder.file()).unwrap();
        let found = runs(&recording);
        let newest = 100 * frame + 99;
        // The newest are there without a gap.
        let oldest = newest + 1 - found.len() as u64;
        assert_eq!(found, Vec::from_iter(oldest..=newest));
        assert!(
            found.len() as u64 >= 2000.min(newest + 1),
            "{}",
            found.len()
        );
        assert_eq!(notes(&recording), []);
    }
}

#[test]
fn a_process_that_starts_again_goes_on_in_the_same_file() {
    let folder = Folder::new();
    for session in 0..3 {
        let recorder = recorder(&folder.file());
        record(&recorder, 10 * session..10 * session + 10);
    }
    let recording = Recording::read(&folder.file()).unwrap();
    assert_eq!(runs(&recording), Vec::from_iter(0..30));
    let sessions = recording.entries().map(|entry| entry.session.number);
    let expected = [1, 2, 3].map(|session| [session; 10]);
    assert_eq!(Vec::from_iter(sessions), expected.concat());
    let process = recording.entries().next().unwrap().session.process;
    assert_eq!(process, std::process::id());
}

#[test]
fn what_a_killed_process_was_writing_is_written_over() {
    let folder = Folder::new();
    record(&recorder(&folder.file()), 0..10);
    let mut bytes = fs::read(folder.file()).unwrap();
    let (at, last) = frame::find(&bytes).last().unwrap();
    let end = at + last.len();
    let torn: Vec<u8> = bytes[at..at + 30].to_vec();
    bytes[end..end + 30].copy_from_slice(&torn);
    fs::write(folder.file(), bytes).unwrap();

    record(&recorder(&folder.file()), 10..20);
    let recording = Recording::read(&folder.file()).unwrap();
    assert_eq!(runs(&recording), Vec::from_iter(0..20));
    assert_eq!(notes(&recording), []);
}

#[test]
fn a_file_of_another_size_is_kept_beside_the_new_one() {
    let folder = Folder::new();
    record(&recorder(&folder.file()), 0..5);
    let larger = Recorder::new(FlightRecorder::file(folder.file()).bytes(100_000));
    record(&larger, 5..9);
    drop(larger);
    assert_eq!(
        runs(&Recording::read(&folder.file()).unwrap()),
        [5, 6, 7, 8]
    );
    let kept = Recording::read(&folder.0.join("op.flight.1")).unwrap();
    assert_eq!(runs(&kept), [0, 1, 2, 3, 4]);
}

#[test]
fn a_file_of_something_else_is_left_as_it_is() {
    let folder = Folder::new();
    fs::write(folder.file(), "not a recording").unwrap();
    let recorder = recorder(&folder.file());
    record(&recorder, 0..5);
    recorder.flush_in_place();
    assert_eq!(recorder.failed(), 5);
    assert_eq!(fs::read(folder.file()).unwrap(), b"not a recording");
    let error = Recording::read(&folder.file()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("op.flight is not a flight recording")
    );
}

#[test]
fn what_could_not_be_written_is_counted_where_it_is_missing() {
    let folder = Folder::new();
    let inner = folder.0.join("later");
    let path = inner.join("op.flight");
    let recorder = recorder(&path);
    record(&recorder, 0..5);
    recorder.flush_in_place();
    record(&recorder, 5..7);
    recorder.flush_in_place();
    assert_eq!(recorder.failed(), 7);
    fs::create_dir(inner).unwrap();
    record(&recorder, 7..9);
    recorder.flush_in_place();
    let recording = Recording::read(&path).unwrap();
    assert_eq!(runs(&recording), [7, 8]);
    assert_eq!(notes(&recording), [EntryBody::Lost { records: 7 }]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_records_and_nothing_else() {
    // Every write to it fails with ENOSPC.
    let recorder = recorder(Path::new("/dev/full"));
    record(&recorder, 0..5);
    recorder.flush_in_place();
    record(&recorder, 5..7);
    recorder.flush_in_place();
    assert_eq!(recorder.failed(), 7);
}

#[test]
fn two_recorders_do_not_share_a_file() {
    let folder = Folder::new();
    let (first, second) = (recorder(&folder.file()), recorder(&folder.file()));
    record(&first, 0..2);
    first.flush_in_place();
    record(&second, 2..4);
    second.flush_in_place();
    assert_eq!((first.failed(), second.failed()), (0, 2));
    assert_eq!(runs(&Recording::read(&folder.file()).unwrap()), [0, 1]);
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new();
    record(&recorder(&folder.file()), 0..2);
    let mode = fs::metadata(folder.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_file_without_records_says_so() {
    let folder = Folder::new();
    let error = Recording::read(&folder.file()).unwrap_err();
    assert!(matches!(error, ReadError::Unreadable { .. }), "{error}");
    for bytes in [&[][..], b"LAR", &[0; 100]] {
        fs::write(folder.file(), bytes).unwrap();
        let error = Recording::read(&folder.file()).unwrap_err();
        assert!(matches!(error, ReadError::Empty { .. }), "{error}");
    }
    let mut later = b"LARIATFR\x02\0\0\0".to_vec();
    later.resize(64, 0);
    fs::write(folder.file(), later).unwrap();
    let error = Recording::read(&folder.file()).unwrap_err();
    assert!(error.to_string().contains("has format 2"), "{error}");
}

#[test]
fn times_are_those_of_the_records_and_may_go_back() {
    let folder = Folder::new();
    let recorder = recorder(&folder.file());
    let start = tokio::time::Instant::now().into_std();
    let after = [0, 5_000, 4_000, 3_600_000_000].map(Duration::from_micros);
    for (run, after) in (0..).zip(after) {
        recorder.record_at(start + after, &call(run));
    }
    recorder.flush_in_place();
    // A time before the first record is that of the first.
    recorder.record_at(start - Duration::from_secs(1), &call(9));
    recorder.flush_in_place();
    let recording = Recording::read(&folder.file()).unwrap();
    let times = recording.entries().map(|entry| entry.at);
    assert_eq!(
        Vec::from_iter(times),
        [&after[..], &[Duration::ZERO]].concat()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_recorded_is_read(draws in prop::collection::vec((draw(), any::<bool>()), 1..60)) {
        let folder = Folder::new();
        let recorder = Recorder::new(FlightRecorder::file(folder.file()).bytes(1 << 20));
        let started = tokio::time::Instant::now().into_std();
        for (draw, flushes) in &draws {
            recorder.record_at(started, &draw.record());
            if *flushes {
                recorder.flush_in_place();
            }
        }
        drop(recorder);
        let recording = Recording::read(&folder.file()).unwrap();
        let read: Vec<_> = recording.entries().map(|entry| entry.body).collect();
        let expected = draws.iter().map(|(draw, _)| EntryBody::Record(draw.record()));
        prop_assert_eq!(read, Vec::from_iter(expected));
    }
}

/// Makes more records than may wait while no task writes them.
#[test]
fn what_comes_faster_than_it_is_written_is_dropped_from_its_oldest_end() {
    let folder = Folder::new();
    let recorder = Recorder::new(FlightRecorder::file(folder.file()).bytes(8 << 20));
    let at: Instant = tokio::time::Instant::now().into_std();
    let all = 600_000;
    for run in 0..all {
        recorder.record_at(at, &call(run));
    }
    recorder.flush_in_place();
    let recording = Recording::read(&folder.file()).unwrap();
    let found = runs(&recording);
    let first = all - found.len() as u64;
    assert!(first > 0, "nothing was dropped");
    assert_eq!(found, Vec::from_iter(first..all));
    let records = u32::try_from(first).unwrap();
    assert_eq!(notes(&recording), [EntryBody::Lost { records }]);
}

#[tokio::test(start_paused = true)]
async fn records_are_written_a_second_after_the_first_and_at_the_end() {
    let folder = Folder::new();
    let recorder = recorder(&folder.file());
    let stop = tokio_util::sync::CancellationToken::new();
    let running = tokio::task::JoinSet::from_iter([recorder.clone().run(stop.clone())]);
    let recorded = || Recording::read(&folder.file()).map_or(0, |all| runs(&all).len());

    recorder.record(&call(0));
    tokio::time::sleep(Duration::from_millis(900)).await;
    record(&recorder, 1..5);
    assert_eq!(recorded(), 0);
    tokio::time::sleep(Duration::from_millis(101)).await;
    assert_eq!(recorded(), 5);

    // A complete frame is written immediately.
    record(&recorder, 5..5000);
    tokio::task::yield_now().await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(recorded() > 5);

    let step = FactoryStep::Stopped;
    recorder.record(&Record::Factory {
        step,
        workers: None,
    });
    stop.cancel();
    running.join_all().await;
    let recording = Recording::read(&folder.file()).unwrap();
    let last = recording.entries().last().unwrap().body;
    assert!(matches!(last, EntryBody::Record(Record::Factory { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_record_at_the_same_time_and_nothing_is_lost() {
    let folder = Folder::new();
    let recorder = Recorder::new(FlightRecorder::file(folder.file()).bytes(8 << 20));
    let stop = tokio_util::sync::CancellationToken::new();
    let mut tasks = tokio::task::JoinSet::new();
    let writer = tokio::task::JoinSet::from_iter([recorder.clone().run(stop.clone())]);
    for task in 0..4 {
        let recorder = recorder.clone();
        tasks.spawn(async move {
            for run in 0..5_000 {
                recorder.record(&call(10_000 * task + run));
                tokio::task::consume_budget().await;
            }
        });
    }
    tasks.join_all().await;
    stop.cancel();
    writer.join_all().await;
    let mut found = runs(&Recording::read(&folder.file()).unwrap());
    // Each task's are in their order.
    let of = |task| found.iter().filter(move |run| **run / 10_000 == task);
    assert!((0..4).all(|task| of(task).is_sorted()));
    found.sort_unstable();
    let all = (0..4).flat_map(|task| 10_000 * task..10_000 * task + 5_000);
    assert_eq!(found, Vec::from_iter(all));
}
