//! The label that tells when the server wrote the state that carries it.
//!
//! The states wait at the server before they are written, so they are stored with a blank label, which is
//! filled in on the way out. Server and subjects are processes of one machine, and share its clock.

use std::io::Write;

use kube::api::ObjectMeta;
use memchr::memmem::Finder;

use crate::meter;

/// The label.
pub(crate) const LABEL: &str = "example.com/written";

/// What stands in it until the state is written: as many digits as microseconds will have.
pub(crate) const BLANK: &str = "0000000000000000";

/// What stands before the digits in JSON.
const BEFORE: &str = "\"example.com/written\":\"";

/// Returns when a state was written, in microseconds of [`meter::micros`]; 0 if it does not tell.
pub(crate) fn read(metadata: &ObjectMeta) -> u64 {
    let labels = metadata.labels.as_ref();
    let label = labels.and_then(|labels| labels.get(LABEL));
    label.and_then(|label| label.parse().ok()).unwrap_or(0)
}

/// Fills in labels.
#[derive(Debug)]
pub(crate) struct Stamper(Finder<'static>);

impl Stamper {
    pub(crate) fn new() -> Self {
        Self(Finder::new(BEFORE))
    }

    /// Writes the present time into the label of an object, if it has one.
    pub(crate) fn stamp(&self, json: &mut [u8]) {
        if let Some(at) = self.0.find(json) {
            let digits = at + BEFORE.len();
            let mut digits = &mut json[digits..digits + BLANK.len()];
            // It cannot fail, for the digits have room for three centuries.
            let _ = write!(digits, "{:0width$}", meter::micros(), width = BLANK.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    #[test]
    fn stamp_is_read_where_it_was_written() {
        let pod = |label: &str| json!({"metadata": {"name": "a", "labels": {LABEL: label}}});
        let mut json = pod(BLANK).to_string().into_bytes();
        let before = meter::micros();
        Stamper::new().stamp(&mut json);
        let stamped: Pod = serde_json::from_slice(&json).unwrap();
        let written = read(&stamped.metadata);
        assert!((before..=meter::micros()).contains(&written), "{written}");
        let blank: Pod = serde_json::from_value(pod(BLANK)).unwrap();
        assert_eq!(read(&blank.metadata), 0);
    }
}
