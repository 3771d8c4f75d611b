//! A flight recorder: the steps of caches, queues and handlers, in a file of fixed size.
//!
//! A [`FlightRecorder`] is the option of a factory: the path and the size of the file. The factory opens a
//! [`Recorder`], and its caches, queues and controllers add [`Record`]s to it. A [`Recording`] reads the file, also
//! after a crash; `lariat replay` prints it.
//!
//! A record contains kinds, object keys, names of handlers, versions, delays and outcomes. It never contains the
//! content, labels or annotations of an object, or the text of an error.
//!
//! ```
//! use lariat_flight::{FactoryStep, FlightRecorder, Record, Recorder, Recording};
//!
//! # let folder = std::env::temp_dir().join(format!("flight-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let path = folder.join("op.flight");
//! let recorder = Recorder::new(FlightRecorder::file(&path).bytes(1 << 20));
//! recorder.record(&Record::Factory { step: FactoryStep::Started, workers: Some(5) });
//! recorder.flush_in_place();
//!
//! let recording = Recording::read(&path)?;
//! assert_eq!(recording.entries().count(), 1);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The file format
//!
//! The file has a header of 64 bytes and a ring of frames. A frame is written after the previous one, or at the
//! beginning of the ring if it does not fit any more. It has a sequence number, a checksum and its own table of names,
//! so it can be read without any other frame.
//!
//! A reader searches the whole file for frames, keeps those with a correct checksum, and orders them by number. So a
//! half-written frame, as after a crash, costs that frame and those that it overwrote.
//!
//! In the order of the data: `record` defines the records and `code` encodes them, `buffer` collects them in frames,
//! `recorder` writes frames to `ring`, and `recording` finds and decodes them.

mod check;
mod code;
mod record;

mod frame;
mod ring;

mod buffer;
mod recorder;

mod recording;

pub use record::{
    CallEnd, CauseType, ChangeType, Controlled, End, FactoryStep, LaneVerdict, Lanes, LineType,
    NextStep, Numbers, Queued, Record, Reflected, Stage, Stored, Urgency, VerdictType, Verdicts,
    Version,
};
pub use recorder::{FlightRecorder, Recorder};
pub use recording::{EntryBody, ReadError, Recording, RecordingEntry, Session};
