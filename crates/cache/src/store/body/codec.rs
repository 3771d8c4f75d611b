//! The form in which new objects of a kind are stored, and when they are packed.
//!
//! Objects of a watch are stored plain first and packed later, many in a row. There are two reasons. A handler is about
//! to read an object that has just changed, and an object that changes often would be packed for nothing. And the first
//! use of zstd after other work costs ten times as much as the next ones, because its tables have left the processor's
//! caches.

use std::collections::VecDeque;
use std::sync::Arc;

use lariat_core::{ObjectKey, ObjectMetadata, ResourceVersion};

use super::dictionary::Dictionary;
use super::{Body, Storage};

/// How many bytes a kind must have before automatic compression begins.
const WORTH_IT: usize = 1024 * 1024;

/// The same for kinds that are always compressed: enough to train a dictionary.
const ENOUGH_TO_LEARN: usize = 64 * 1024;

/// How many objects a dictionary is trained from.
pub(in crate::store) const SAMPLES: usize = 256;

/// With fewer samples than this, a failed training is repeated later.
const FEW: usize = 64;

/// Automatic compression is used if it makes samples smaller than this share.
const WORTHWHILE_SHARE: f64 = 0.6;

/// Shorter texts are not packed.
const SHORTEST: usize = 128;

/// How many bytes of JSON may wait to be packed, and how many packing leaves.
const MOST: usize = 512 * 1024;
const LEFT: usize = 256 * 1024;

/// Creates bodies in the form that is chosen for the kind.
#[derive(Debug, Default)]
pub(in crate::store) struct Codec {
    storage: Storage,
    /// The result of the last training.
    trained: Trained,
    /// Whether the dictionary is for metadata only.
    partial: bool,
    /// How many bytes the kind must have before training is repeated.
    again_at: usize,
    /// The states that are stored plain and wait to be packed.
    queue: PackQueue,
}

/// The states that wait to be packed, oldest first.
#[derive(Debug, Default)]
struct PackQueue {
    states: VecDeque<Waiting>,
    /// The sum of the lengths of their JSON, including states that were replaced since.
    bytes: usize,
}

/// A state that waits to be packed; it may have been replaced since.
#[derive(Debug)]
pub(in crate::store) struct Waiting {
    pub(in crate::store) key: ObjectKey,
    pub(in crate::store) version: ResourceVersion,
    bytes: usize,
}

/// Which of the waiting states are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// The oldest, if too many bytes wait.
    Old,
    All,
}

#[derive(Debug, Default)]
pub(in crate::store) enum Trained {
    #[default]
    Nothing,
    /// Compression does not make objects of this kind smaller.
    Incompressible,
    Dictionary(Arc<Dictionary>),
}

impl Codec {
    pub(in crate::store) fn set_storage(&mut self, storage: Storage) {
        self.storage = storage;
    }

    /// Sets whether only metadata arrives from now on.
    ///
    /// This drops a dictionary for the other form: content has little in common with metadata.
    pub(in crate::store) fn expect(&mut self, partial: bool) {
        if self.partial != partial {
            self.partial = partial;
            self.trained = Trained::Nothing;
            self.again_at = 0;
        }
    }

    /// Returns whether decoded values are kept.
    pub(in crate::store) fn retains(&self) -> bool {
        self.storage == Storage::Decoded
    }

    fn compresses(&self) -> bool {
        matches!(
            self.storage,
            Storage::Auto | Storage::Compressed | Storage::OnDemand
        )
    }

    /// Returns the size of the dictionary.
    pub(in crate::store) fn bytes(&self) -> usize {
        match &self.trained {
            Trained::Dictionary(dictionary) => dictionary.bytes(),
            _ => 0,
        }
    }

    /// Creates a body in the form that is chosen for the kind.
    pub(in crate::store) fn body(&self, json: Box<[u8]>) -> Body {
        let packed = self
            .dictionary(json.len())
            .and_then(|dictionary| pack(dictionary, &json));
        packed.unwrap_or_else(|| Body::plain(json))
    }

    /// Returns the dictionary for a JSON of this length, if such a JSON is packed.
    pub(in crate::store) fn dictionary(&self, length: usize) -> Option<&Arc<Dictionary>> {
        match &self.trained {
            Trained::Dictionary(dictionary) if self.compresses() && length >= SHORTEST => {
                Some(dictionary)
            }
            _ => None,
        }
    }

    /// Queues a state for packing, if states of its size are packed.
    pub(in crate::store) fn pack_later(&mut self, object: &ObjectMetadata, bytes: usize) {
        if self.dictionary(bytes).is_none() {
            return;
        }
        self.queue.bytes += bytes;
        // Key and version, not the object: a queued reference would keep replaced states in memory.
        self.queue.states.push_back(Waiting {
            key: object.key().clone(),
            version: object.version().clone(),
            bytes,
        });
    }

    /// Returns how many bytes of JSON wait to be packed.
    pub(in crate::store) fn waiting_bytes(&self) -> usize {
        self.queue.bytes
    }

    /// Returns how many states wait to be packed, and the upper bound.
    ///
    /// The bound holds after each batch of a watch.
    pub(in crate::store) fn waiting(&self) -> (usize, usize) {
        // No state in the queue is shorter than `SHORTEST`.
        (self.queue.states.len(), MOST / SHORTEST)
    }

    /// Removes the oldest states until at most `limit` bytes wait.
    pub(in crate::store) fn take_waiting(&mut self, limit: usize) -> impl Iterator<Item = Waiting> {
        let queue = &mut self.queue;
        std::iter::from_fn(move || {
            if queue.bytes <= limit {
                return None;
            }
            let oldest = queue.states.pop_front()?;
            queue.bytes -= oldest.bytes;
            Some(oldest)
        })
    }

    /// Returns whether the content of objects is kept, rather than their metadata only.
    pub(in crate::store) fn keeps_content(&self) -> bool {
        self.storage != Storage::OnDemand
    }

    /// Returns whether a body is in the form that is chosen for the kind.
    ///
    /// The decision does not create another body, so a plain body that would not become smaller counts as outdated.
    pub(in crate::store) fn is_current(&self, body: &Body) -> bool {
        match (body, &self.trained) {
            (Body::Packed { .. }, _) if !self.compresses() => false,
            (
                Body::Packed {
                    dictionary: was, ..
                },
                Trained::Dictionary(is),
            ) => Arc::ptr_eq(was, is),
            // Packed with a dictionary that was dropped: still better than plain until there is another dictionary.
            (Body::Packed { .. }, _) => true,
            (Body::Plain(json), Trained::Dictionary(_)) => {
                !self.compresses() || json.len() < SHORTEST
            }
            (Body::Plain(_), _) => true,
        }
    }

    /// Returns the training that is due, if any.
    pub(in crate::store) fn training(&self) -> Option<Training> {
        let training = Training {
            storage: self.storage,
            partial: self.partial,
        };
        (self.compresses() && matches!(self.trained, Trained::Nothing)).then_some(training)
    }

    /// Returns whether the kind has enough bytes to train from.
    pub(in crate::store) fn wants_samples(&self, held: usize) -> bool {
        let enough = match self.storage {
            Storage::Auto => WORTH_IT,
            _ => ENOUGH_TO_LEARN,
        };
        self.training().is_some() && held >= enough.max(self.again_at)
    }

    /// Adopts the result of a training, unless another training is due by now.
    ///
    /// Returns whether new bodies are packed from now on.
    pub(in crate::store) fn adopt(&mut self, training: Training, result: TrainingResult) -> bool {
        if self.training() != Some(training) {
            return false;
        }
        match result {
            TrainingResult::TooFew(bytes) => self.again_at = 2 * bytes,
            TrainingResult::Trained(trained) => self.trained = trained,
        }
        matches!(self.trained, Trained::Dictionary(_))
    }
}

impl Age {
    /// Returns how many bytes must wait before packing begins.
    pub(in crate::store) fn limit(self) -> usize {
        match self {
            Self::Old => MOST,
            Self::All => 0,
        }
    }

    /// Returns how many bytes are left after packing.
    pub(in crate::store) fn left(self) -> usize {
        self.limit().min(LEFT)
    }
}

/// A training of a dictionary. It takes long, so it runs without access to the codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct Training {
    storage: Storage,
    partial: bool,
}

/// The result of a training.
#[derive(Debug)]
pub(in crate::store) enum TrainingResult {
    /// The samples were few and large, of this many bytes; they had nothing in common.
    TooFew(usize),
    Trained(Trained),
}

impl Training {
    /// Returns whether the dictionary is for objects without content.
    pub(in crate::store) fn is_of_metadata(self) -> bool {
        self.partial
    }

    /// Trains a dictionary from samples.
    pub(in crate::store) fn train(self, samples: &[Box<[u8]>]) -> TrainingResult {
        let dictionary = Dictionary::train(samples).filter(|dictionary| {
            self.storage != Storage::Auto || share(dictionary, samples) < WORTHWHILE_SHARE
        });
        match dictionary {
            Some(dictionary) => TrainingResult::Trained(Trained::Dictionary(Arc::new(dictionary))),
            None if samples.len() < FEW => {
                TrainingResult::TooFew(samples.iter().map(|sample| sample.len()).sum())
            }
            None => TrainingResult::Trained(Trained::Incompressible),
        }
    }
}

/// Packs a JSON text; `None` if that does not make it smaller.
pub(in crate::store) fn pack(dictionary: &Arc<Dictionary>, json: &[u8]) -> Option<Body> {
    Some(Body::Packed {
        bytes: dictionary.pack(json)?,
        length: u32::try_from(json.len()).ok()?,
        dictionary: Arc::clone(dictionary),
    })
}

/// Returns the packed size of samples as a share of their plain size.
fn share(dictionary: &Dictionary, samples: &[Box<[u8]>]) -> f64 {
    let packed = |sample: &[u8]| dictionary.pack(sample).map_or(sample.len(), |p| p.len());
    let before: usize = samples.iter().map(|sample| sample.len()).sum();
    let after: usize = samples.iter().map(|sample| packed(sample)).sum();
    after as f64 / before.max(1) as f64
}
