//! Deciding in which form new objects of a kind are kept.

use std::sync::Arc;

use super::dictionary::Dictionary;
use super::{Body, Bytes, Storage};

/// How much a kind holds before compression is worth its dictionary.
const WORTH_IT: usize = 1024 * 1024;

/// The same for kinds that are to be compressed in any case: what a dictionary needs to learn from.
const ENOUGH_TO_LEARN: usize = 64 * 1024;

/// How many objects a dictionary is made from.
pub(in crate::store) const SAMPLES: usize = 256;

/// Fewer samples than this are no reason to give up.
const FEW: usize = 64;

/// Automatic compression has to make objects smaller than this share.
const WORTHWHILE_SHARE: f64 = 0.6;

/// Shorter texts are kept as they are.
const SHORTEST: usize = 128;

/// Makes bodies in the form that was chosen for the kind.
#[derive(Debug, Default)]
pub(in crate::store) struct Codec {
    storage: Storage,
    /// What was learned so far.
    learned: Learned,
    /// How much the kind has to hold before it is learned from again.
    again_at: usize,
}

#[derive(Debug, Default)]
enum Learned {
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

    /// Returns whether decoded values are to be kept.
    pub(in crate::store) fn retains(&self) -> bool {
        self.storage == Storage::Decoded
    }

    fn compresses(&self) -> bool {
        matches!(
            self.storage,
            Storage::Auto | Storage::Compressed | Storage::OnDemand
        )
    }

    /// Returns what the dictionary holds.
    pub(in crate::store) fn bytes(&self) -> usize {
        match &self.learned {
            Learned::Dictionary(dictionary) => dictionary.bytes(),
            _ => 0,
        }
    }

    /// Makes a body.
    pub(in crate::store) fn body(&self, json: Box<[u8]>, partial: bool) -> Body {
        let packed = match &self.learned {
            Learned::Dictionary(dictionary) if self.compresses() && json.len() >= SHORTEST => {
                dictionary.pack(&json).map(|bytes| (bytes, dictionary))
            }
            _ => None,
        };
        let bytes = match (packed, u32::try_from(json.len())) {
            (Some((bytes, dictionary)), Ok(length)) => Bytes::Packed {
                bytes,
                length,
                dictionary: Arc::clone(dictionary),
            },
            _ => Bytes::Plain(json),
        };
        Body { bytes, partial }
    }

    /// Returns whether it may come to learn.
    pub(in crate::store) fn is_learning(&self) -> bool {
        self.compresses() && matches!(self.learned, Learned::Nothing)
    }

    /// Returns whether it is time to learn from a kind that holds so much.
    pub(in crate::store) fn wants_samples(&self, held: usize) -> bool {
        let enough = match self.storage {
            Storage::Auto => WORTH_IT,
            _ => ENOUGH_TO_LEARN,
        };
        self.is_learning() && held >= enough.max(self.again_at)
    }

    /// Learns from samples; returns whether bodies are made differently from now on.
    pub(in crate::store) fn learn(&mut self, samples: &[Box<[u8]>]) -> bool {
        let learned = Dictionary::train(samples).filter(|dictionary| {
            self.storage != Storage::Auto || share(dictionary, samples) < WORTHWHILE_SHARE
        });
        self.learned = match learned {
            Some(dictionary) => Learned::Dictionary(Arc::new(dictionary)),
            // A few large objects say nothing of what many have in common.
            None if samples.len() < FEW => {
                self.again_at = 2 * samples.iter().map(|sample| sample.len()).sum::<usize>();
                Learned::Nothing
            }
            None => Learned::Incompressible,
        };
        matches!(self.learned, Learned::Dictionary(_))
    }
}

/// Returns how large samples are once they are packed, beside how large they were.
fn share(dictionary: &Dictionary, samples: &[Box<[u8]>]) -> f64 {
    let packed = |sample: &[u8]| dictionary.pack(sample).map_or(sample.len(), |p| p.len());
    let before: usize = samples.iter().map(|sample| sample.len()).sum();
    let after: usize = samples.iter().map(|sample| packed(sample)).sum();
    after as f64 / before.max(1) as f64
}
