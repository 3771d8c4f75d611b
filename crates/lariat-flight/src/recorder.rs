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

/// The smallest size of a file.
const LEAST: u64 = 64 << 10;

/// How many bytes wait at most to be written.
const UNWRITTEN: usize = 2 << 20;

/// How long records wait at most before they are written.
const PERIOD: Duration = Duration::from_secs(1);

/// The options of a flight recorder: the file and its size.
///
/// It is an option of factories, off by default. The file has a fixed size, and the oldest records are overwritten.
/// Only its owner can read it. Each process needs a file of its own; a process that starts again continues in the same
/// file, with a new session. A file of another size or format is renamed to `FILE.1`. A file that is not a recording is
/// left unchanged: then nothing is recorded, which is logged once.
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
    path: PathBuf,
    bytes: u64,
}

impl FlightRecorder {
    /// Records in a file; its folder must exist.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            bytes: BYTES,
        }
    }

    /// Sets the size of the file in bytes (default 8 MiB).
    ///
    /// Less than 64 KiB, including zero, means 64 KiB.
    pub fn bytes(self, bytes: u64) -> Self {
        let bytes = bytes.max(LEAST);
        Self { bytes, ..self }
    }
}

/// Writes records to a file; a clone is the same recorder.
///
/// [`record`](Self::record) never waits for the file. Records are kept in memory and written by [`run`](Self::run): a
/// second after the first unwritten one, or as soon as 32 KiB are waiting. At most 2 MiB wait; beyond that the oldest
/// are dropped, and the file contains how many. If a write fails, that is logged once, and the records of that write
/// count as lost. When the last clone is dropped, the remaining records are written.
///
/// Written records survive if the process is killed. They are not synced to the disk, so if the machine itself fails,
/// the last seconds may be missing.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<RecorderCore>,
}

struct RecorderCore {
    options: FlightRecorder,
    buffer: Mutex<Buffer>,
    /// Notified when a first record waits to be written, and when a frame is complete.
    waits: Notify,
    /// Locked before the buffer, and while frames are written, to keep their order.
    file: Mutex<Option<Ring>>,
    /// Whether a failure of the file was logged.
    is_reported: AtomicBool,
    /// How many records could not be written.
    failed: AtomicU64,
    /// The last number that was returned.
    numbers: AtomicU32,
}

impl Recorder {
    /// Creates a recorder. The file is opened by the first write.
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

    /// Adds a record with the present time of tokio's clock.
    pub fn record(&self, record: &Record<'_>) {
        self.record_at(time::Instant::now().into_std(), record);
    }

    /// Adds a record with a time. Records are kept in the order of the calls.
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

    /// Returns how many records could not be written because the file failed.
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

    /// Writes records as they come, until `stop` is cancelled; then writes the rest.
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
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: unwritten records can be written by another call.
    pub async fn run(self, stop: CancellationToken) {
        while stop.run_until_cancelled(self.has_waited()).await.is_some() {
            self.flush().await;
        }
        self.flush().await;
    }

    /// Waits until there are records to write that have waited for long enough.
    async fn has_waited(&self) {
        let waits = &self.shared.waits;
        waits.notified().await;
        let full = async {
            while !self.shared.buffer.lock().has_full() {
                waits.notified().await;
            }
        };
        // Either is fine: the time has passed, or a frame is complete.
        let _ = time::timeout(PERIOD, full).await;
    }

    /// Writes all records.
    ///
    /// On a multi-threaded runtime this uses a blocking thread, otherwise the current one.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the write continues.
    pub async fn flush(&self) {
        let is_threaded =
            |runtime: Handle| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread;
        if !Handle::try_current().is_ok_and(is_threaded) {
            return self.flush_in_place();
        }
        let recorder = self.clone();
        // It fails only if the runtime ends.
        let _ = task::spawn_blocking(move || recorder.flush_in_place()).await;
    }

    /// Writes all records, on this thread.
    pub fn flush_in_place(&self) {
        self.shared.flush();
    }
}

impl RecorderCore {
    fn flush(&self) {
        let mut file = self.file.lock();
        // Records that come meanwhile are left for the next call; otherwise this might not end.
        let frames = self.buffer.lock().seal_all();
        for _ in 0..frames {
            let Some((frame, lost)) = self.buffer.lock().pop() else {
                return;
            };
            if let Err(error) = self.append(&mut file, &frame.payload, frame.records, lost) {
                let records = u64::from(frame.records);
                // The next frame that is written contains the count of both.
                self.buffer.lock().lose(records + u64::from(lost));
                self.failed.fetch_add(records, Ordering::Relaxed);
                self.report(&error);
            }
        }
    }

    fn append(
        &self,
        file: &mut Option<Ring>,
        payload: &[u8],
        records: u32,
        lost: u32,
    ) -> std::io::Result<()> {
        let ring = match file {
            Some(ring) => ring,
            None => file.insert(Ring::open(&self.options.path, self.options.bytes)?),
        };
        ring.append(payload, records, lost)
    }

    fn report(&self, error: &std::io::Error) {
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
