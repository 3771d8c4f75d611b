//! A flight recorder: what caches, queues and handlers did, in a file of fixed size.
//!
//! A [`FlightRecorder`] has the file's path and size. The factory that is given one opens a [`Recorder`], to which
//! caches, queues and controllers pass [`Record`]s. A [`Recording`] reads the file again, also after a crash, and
//! `lariat replay` prints it.
//!
//! A record contains kinds, object keys, names of handlers, versions, delays and outcomes. It never contains the
//! content of an object, its labels or annotations, or the text of an error.
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
//! # The file
//!
//! The file has a header of 64 bytes, then a ring of frames. A frame is written after the last one, or at the beginning
//! of the ring if it does not fit any more, and has a sequence number and a checksum of its own. It also has its own
//! table of names, so it can be read without any other. A reader searches the whole file for frames, takes those whose
//! checksum is right, and orders them by number. So a half-written frame, as after a crash, costs that frame and the
//! ones it overwrites.

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
pub use recording::{ReadError, Recording, RecordingEntry, Session, What};
