//! Reviews in the form in which the API server sends and expects them.
//!
//! `envelope` reads the outer part of a body, and `admission` and `conversion` have the requests and responses. An
//! [`Answer`] is a review, or the refusal of a call.

mod admission;
mod answer;
mod conversion;
mod envelope;

pub(crate) use admission::{AdmissionRequest, AdmissionResponse};
pub(crate) use answer::Answer;
pub(crate) use conversion::{ConversionRequest, ConversionResponse};
pub(crate) use envelope::read;
