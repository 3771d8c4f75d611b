//! Reviews as the API server sends and expects them.

mod admission;
mod answer;
mod conversion;
mod envelope;

pub(crate) use admission::{AdmissionRequest, AdmissionResponse};
pub(crate) use answer::Answer;
pub(crate) use conversion::{ConversionRequest, ConversionResponse};
pub(crate) use envelope::read;
