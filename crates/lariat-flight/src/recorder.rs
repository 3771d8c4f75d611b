//! The recorder of a process.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;
use tokio::{task, time};
use tokio_util::sync::CancellationToken;

use crate::buffer::Buffer;
use crate::record::Record;
use crate::ring::Ring;

/// The default size of a file, in bytes.
const BYTES: u64 = 8 << 20;

/// The smallest size of a file, in bytes.
const LEAST: u64 = 64 << 10;

/// The maximum number of bytes that wait to be written.
const UNWRITTEN: usize = 2 << 20;

/// The longest time that records wait before they are written.
const PERIOD: Duration = Duration::from_secs(1);

/// The options of a flight recorder: the file and its size.
///
/// It is an option of factories, off by default. The file has a fixed size, the oldest records are overwritten, and
/// only its owner can read it. Each process needs its own file. A process that starts again continues in the same file,
/// with a new session. A file of another size or format is renamed to `FILE.1`. A file that is not a recording is not
/// touched: then nothing is recorded, and a warning is logged once.
///
/// ```
/// use lariat_flight::FlightRecorder;
///
/// let recorder = FlightRecorder::file("/var/run/op.flight").bytes(32 << 20);
/// # let _ = recorder;
/// ```
#[derive(Debug, Clone)]
#[must_use = "an option does nothing until a factory has it"]
pub struct FlightRecorder {
    /// The path of the file.
    path: PathBuf,
    /// The size of the file, in bytes.
    bytes: u64,
}

impl FlightRecorder {
    /// Records to a file, whose directory must exist.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            bytes: BYTES,
        }
    }

    /// Sets the size of the file in bytes (default: 8 MiB).
    ///
    /// Less than 64 KiB, including zero, counts as 64 KiB.
    pub fn bytes(self, bytes: u64) -> Self {
        let bytes = bytes.max(LEAST);
        Self { bytes, ..self }
    }
}

/// Writes records to a file; clones share one recorder.
///
/// [`record`](Self::record) never waits for the file. Records are buffered in memory and written by [`run`](Self::run):
/// a second after the first unwritten one, or as soon as 32 KiB are waiting. At most 2 MiB are buffered; beyond that
/// the oldest are dropped, and the file reports how many. If a write fails, a warning is logged once, and the records
/// of that write count as lost. When the last clone is dropped, the remaining records are written.
///
/// Written records survive if the process is killed. They are not synced to the disk, so the last seconds may be
/// missing if the machine itself fails.
///
/// ```
/// use lariat_flight::{FactoryStep, FlightRecorder, Record, Recorder};
///
/// # let folder = std::env::temp_dir().join(format!("flight-recorder-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let recorder = Recorder::new(FlightRecorder::file(folder.join("op.flight")));
/// recorder.record(&Record::Factory { step: FactoryStep::Stopping, workers: None });
/// recorder.flush_in_place();
/// assert_eq!(recorder.failed(), 0);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Recorder {
    /// The shared state.
    shared: Arc<RecorderCore>,
}

/// The state that clones share.
struct RecorderCore {
    /// The file and its size.
    options: FlightRecorder,
    /// The records that are not written yet.
    buffer: Mutex<Buffer>,
    /// Notified when a first record waits, and when a frame is complete.
    waits: Notify,
    /// The file; `None` until the first write.
    ///
    /// Locked before the buffer and while frames are written, to keep their order.
    file: Mutex<Option<Ring>>,
    /// Whether a failure of the file has been logged.
    is_reported: AtomicBool,
    /// How many records could not be written.
    failed: AtomicU64,
    /// The last number that was returned.
    numbers: AtomicU32,
}

impl Recorder {
    /// Creates a recorder. The file is opened with the first write.
    #[must_use]
    pub fn new(options: FlightRecorder) -> Self {
        let buffer = Buffer::new(options.bytes, UNWRITTEN);
        Self {
            shared: Arc::new(RecorderCore {
                options,
                buffer: Mutex::new(buffer),
                waits: Notify::new(),
                file: Mutex::default(),
                is_reported: AtomicBool::new(false),
                failed: AtomicU64::new(0),
                numbers: AtomicU32::new(0),
            }),
        }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.options.path
    }

    /// Adds a record with the current time of tokio's clock.
    pub fn record(&self, record: &Record<'_>) {
        self.record_at(time::Instant::now().into_std(), record);
    }

    /// Adds a record with a time. Records are stored in the order of the calls.
    pub fn record_at(&self, at: Instant, record: &Record<'_>) {
        let waits = self.shared.buffer.lock().push(at, record);
        if waits {
            self.shared.waits.notify_one();
        }
    }

    /// Returns the next number of a reflector or queue, unique in this recorder.
    ///
    /// ```
    /// use lariat_flight::{FlightRecorder, Recorder};
    ///
    /// let recorder = Recorder::new(FlightRecorder::file("/no/such/folder/op.flight"));
    /// assert_eq!(recorder.number(), 1);
    /// assert_eq!(recorder.clone().number(), 2, "a clone counts on");
    /// ```
    #[must_use]
    pub fn number(&self) -> u32 {
        self.shared.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns how many records were lost because the file could not be written.
    ///
    /// ```
    /// use lariat_flight::{FlightRecorder, Recorder};
    ///
    /// let recorder = Recorder::new(FlightRecorder::file("/no/such/folder/op.flight"));
    /// assert_eq!(recorder.failed(), 0, "nothing was recorded yet");
    /// ```
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Writes records as they arrive until `stop` is cancelled; then writes the rest.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: unwritten records can be written by another call.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lariat_flight::{FlightRecorder, Recorder};
    /// use tokio_util::sync::CancellationToken;
    ///
    /// # async fn example() {
    /// let recorder = Recorder::new(FlightRecorder::file("/var/run/op.flight"));
    /// let stop = CancellationToken::new();
    /// let writer = recorder.clone().run(stop.clone());
    /// # writer.await; }
    /// ```
    pub async fn run(self, stop: CancellationToken) {
        // The wait is cancelled by the stop, a write is not.
        while stop.run_until_cancelled(self.has_waited()).await.is_some() {
            self.flush().await;
        }
        self.flush().await;
    }

    /// Waits until there are records that have waited for long enough.
    async fn has_waited(&self) {
        let waits = &self.shared.waits;
        waits.notified().await;
        let full = async {
            while !self.shared.buffer.lock().has_full() {
                waits.notified().await;
            }
        };
        // Both results are fine: the time has passed, or a frame is complete.
        let _ = time::timeout(PERIOD, full).await;
    }

    /// Writes all records.
    ///
    /// On a multi-threaded runtime this uses a blocking thread, otherwise the current one.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the write continues in the background.
    pub async fn flush(&self) {
        let is_threaded =
            |runtime: Handle| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread;
        if !Handle::try_current().is_ok_and(is_threaded) {
            return self.flush_in_place();
        }
        let recorder = self.clone();
        // Fails only if the runtime is shutting down. The last clone writes the rest then.
        let _ = task::spawn_blocking(move || recorder.flush_in_place()).await;
    }

    /// Writes all records on the current thread, which it blocks.
    pub fn flush_in_place(&self) {
        self.shared.flush();
    }
}

impl RecorderCore {
    /// Writes all records that are buffered now.
    fn flush(&self) {
        // Two flushes at the same time would write frames out of order.
        let mut file = self.file.lock();
        // Records that arrive meanwhile are left to the next call. Otherwise this might never end.
        let frames = self.buffer.lock().seal_all();
        for _ in 0..frames {
            // The buffer is not locked while a frame is written, so `record` does not wait for the file.
            let Some((frame, lost)) = self.buffer.lock().pop() else {
                return;
            };
            if let Err(error) = self.append(&mut file, &frame.payload, frame.records, lost) {
                let records = u64::from(frame.records);
                // The next frame that is written reports both.
                self.buffer.lock().lose(records + u64::from(lost));
                self.failed.fetch_add(records, Ordering::Relaxed);
                self.report(&error);
            }
        }
    }

    /// Appends a frame; opens the file first if it is not open.
    fn append(
        &self,
        file: &mut Option<Ring>,
        payload: &[u8],
        records: u32,
        lost: u32,
    ) -> std::io::Result<()> {
        let ring = match file {
            Some(ring) => ring,
            // After a failure the file is opened again with the next frame: the directory may exist by then.
            None => file.insert(Ring::open(&self.options.path, self.options.bytes)?),
        };
        ring.append(payload, records, lost)
    }

    /// Logs the first failure of the file.
    fn report(&self, error: &std::io::Error) {
        // Once only: a full disk would otherwise flood the log every second.
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            let file = self.options.path.display();
            tracing::warn!(%file, %error, "the flight recorder cannot write; records are lost until it can");
        }
    }
}

impl Drop for RecorderCore {
    fn drop(&mut self) {
        self.flush();
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}
