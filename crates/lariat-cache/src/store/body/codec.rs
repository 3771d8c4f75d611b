//! The form in which new objects of a kind are stored, and when they are packed.
//!
//! A handler is about to read what has just changed, and what changes often would be packed for nothing. So objects of
//! a watch are stored as they arrive and packed later, many in a row: the first use of zstd after other work costs ten
//! times as much as those after it, because its tables have left the processor's caches.

use std::collections::VecDeque;
use std::sync::Arc;

use lariat_core::{ObjectKey, ObjectMetadata, ResourceVersion};

use super::dictionary::Dictionary;
use super::{Body, Storage};

/// How many bytes a kind must have before compression is worth its dictionary.
const WORTH_IT: usize = 1024 * 1024;

/// The same for kinds that are compressed in any case: what training a dictionary takes.
const ENOUGH_TO_LEARN: usize = 64 * 1024;

/// How many objects a dictionary is trained from.
pub(in crate::store) const SAMPLES: usize = 256;

/// If training fails with fewer samples than this, it is tried again later.
const FEW: usize = 64;

/// Automatic compression must make objects smaller than this share.
const WORTHWHILE_SHARE: f64 = 0.6;

/// Shorter texts are not packed.
const SHORTEST: usize = 128;

/// How many bytes of JSON may wait to be packed, and how many are left over.
const MOST: usize = 512 * 1024;
const LEFT: usize = 256 * 1024;

/// Creates bodies in the form that was chosen for the kind.
#[derive(Debug, Default)]
pub(in crate::store) struct Codec {
    storage: Storage,
    /// What training has yielded.
    learned: Learned,
    /// Whether it is trained from metadata only.
    partial: bool,
    /// How many bytes the kind must have before training is tried again.
    again_at: usize,
    /// The states that are stored plain and wait to be packed.
    young: Young,
}

/// The states that wait to be packed, oldest first.
#[derive(Debug, Default)]
struct Young {
    states: VecDeque<Waiting>,
    /// The sum of the lengths of their JSON, including replaced ones.
    bytes: usize,
}

/// A state that may have been replaced since.
#[derive(Debug)]
pub(in crate::store) struct Waiting {
    pub(in crate::store) key: ObjectKey,
    pub(in crate::store) version: ResourceVersion,
    bytes: usize,
}

/// Which of the waiting objects are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// The oldest, if too many wait.
    Old,
    All,
}

#[derive(Debug, Default)]
pub(in crate::store) enum Learned {
    #[default]
    Nothing,
    /// Texts of this kind do not become smaller.
    Incompressible,
    Dictionary(Arc<Dictionary>),
}

impl Codec {
    pub(in crate::store) fn set_storage(&mut self, storage: Storage) {
        self.storage = storage;
    }

    /// Sets whether only metadata arrives from now on.
    ///
    /// A dictionary for the other form is dropped: content has little in common with metadata.
    pub(in crate::store) fn expect(&mut self, partial: bool) {
        if self.partial != partial {
            self.partial = partial;
            self.learned = Learned::Nothing;
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
        match &self.learned {
            Learned::Dictionary(dictionary) => dictionary.bytes(),
            _ => 0,
        }
    }

    /// Creates a body in the chosen form.
    pub(in crate::store) fn body(&self, json: Box<[u8]>) -> Body {
        let packed = self
            .dictionary(json.len())
            .and_then(|dictionary| pack(dictionary, &json));
        packed.unwrap_or_else(|| Body::plain(json))
    }

    /// Returns the dictionary for a JSON of this length, if it is packed.
    pub(in crate::store) fn dictionary(&self, length: usize) -> Option<&Arc<Dictionary>> {
        match &self.learned {
            Learned::Dictionary(dictionary) if self.compresses() && length >= SHORTEST => {
                Some(dictionary)
            }
            _ => None,
        }
    }

    /// Queues a state for packing, if it is to be packed at all.
    pub(in crate::store) fn pack_later(&mut self, object: &ObjectMetadata, bytes: usize) {
        if self.dictionary(bytes).is_none() {
            return;
        }
        self.young.bytes += bytes;
        self.young.states.push_back(Waiting {
            key: object.key().clone(),
            version: object.version().clone(),
            bytes,
        });
    }

    /// Returns how many bytes of JSON wait to be packed.
    pub(in crate::store) fn young_bytes(&self) -> usize {
        self.young.bytes
    }

    /// Returns how many states wait to be packed, and the upper bound.
    ///
    /// The bound holds after a batch of a watch.
    pub(in crate::store) fn young(&self) -> (usize, usize) {
        // None is shorter than what is worth packing.
        (self.young.states.len(), MOST / SHORTEST)
    }

    /// Removes the oldest states as long as more bytes wait than a limit.
    pub(in crate::store) fn take_young(&mut self, limit: usize) -> impl Iterator<Item = Waiting> {
        let young = &mut self.young;
        std::iter::from_fn(move || {
            if young.bytes <= limit {
                return None;
            }
            let oldest = young.states.pop_front()?;
            young.bytes -= oldest.bytes;
            Some(oldest)
        })
    }

    /// Returns whether the content of objects is kept, rather than their metadata only.
    pub(in crate::store) fn keeps_content(&self) -> bool {
        self.storage != Storage::OnDemand
    }

    /// Returns whether a body is in the chosen form.
    ///
    /// As far as can be decided without creating another body.
    pub(in crate::store) fn is_current(&self, body: &Body) -> bool {
        match (body, &self.learned) {
            (Body::Packed { .. }, _) if !self.compresses() => false,
            (
                Body::Packed {
                    dictionary: was, ..
                },
                Learned::Dictionary(is),
            ) => Arc::ptr_eq(was, is),
            // Better than plain text, until there is another dictionary.
            (Body::Packed { .. }, _) => true,
            (Body::Plain(json), Learned::Dictionary(_)) => {
                !self.compresses() || json.len() < SHORTEST
            }
            (Body::Plain(_), _) => true,
        }
    }

    /// Returns the training that is due, if any.
    pub(in crate::store) fn course(&self) -> Option<Course> {
        let course = Course {
            storage: self.storage,
            partial: self.partial,
        };
        (self.compresses() && matches!(self.learned, Learned::Nothing)).then_some(course)
    }

    /// Returns whether the kind has enough bytes to train from.
    pub(in crate::store) fn wants_samples(&self, held: usize) -> bool {
        let enough = match self.storage {
            Storage::Auto => WORTH_IT,
            _ => ENOUGH_TO_LEARN,
        };
        self.course().is_some() && held >= enough.max(self.again_at)
    }

    /// Adopts the result of a training, unless another one is due by now.
    ///
    /// Returns whether bodies are created differently from now on.
    pub(in crate::store) fn adopt(&mut self, course: Course, lesson: Lesson) -> bool {
        if self.course() != Some(course) {
            return false;
        }
        match lesson {
            Lesson::TooFew(bytes) => self.again_at = 2 * bytes,
            Lesson::Learned(learned) => self.learned = learned,
        }
        matches!(self.learned, Learned::Dictionary(_))
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

/// A training of a dictionary. It runs without the codec, because it takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct Course {
    storage: Storage,
    partial: bool,
}

/// The result of a training.
#[derive(Debug)]
pub(in crate::store) enum Lesson {
    /// The samples were a few large objects, of this many bytes.
    ///
    /// They show nothing in common.
    TooFew(usize),
    Learned(Learned),
}

impl Course {
    /// Returns whether it is about objects of which only metadata is stored.
    pub(in crate::store) fn is_of_metadata(self) -> bool {
        self.partial
    }

    /// Trains a dictionary from samples.
    pub(in crate::store) fn learn(self, samples: &[Box<[u8]>]) -> Lesson {
        let dictionary = Dictionary::train(samples).filter(|dictionary| {
            self.storage != Storage::Auto || share(dictionary, samples) < WORTHWHILE_SHARE
        });
        match dictionary {
            Some(dictionary) => Lesson::Learned(Learned::Dictionary(Arc::new(dictionary))),
            None if samples.len() < FEW => {
                Lesson::TooFew(samples.iter().map(|sample| sample.len()).sum())
            }
            None => Lesson::Learned(Learned::Incompressible),
        }
    }
}

/// Packs a JSON; `None` if that does not make it smaller.
pub(in crate::store) fn pack(dictionary: &Arc<Dictionary>, json: &[u8]) -> Option<Body> {
    Some(Body::Packed {
        bytes: dictionary.pack(json)?,
        length: u32::try_from(json.len()).ok()?,
        dictionary: Arc::clone(dictionary),
    })
}

/// Returns the packed size of samples as a share of their size.
fn share(dictionary: &Dictionary, samples: &[Box<[u8]>]) -> f64 {
    let packed = |sample: &[u8]| dictionary.pack(sample).map_or(sample.len(), |p| p.len());
    let before: usize = samples.iter().map(|sample| sample.len()).sum();
    let after: usize = samples.iter().map(|sample| packed(sample)).sum();
    after as f64 / before.max(1) as f64
}
