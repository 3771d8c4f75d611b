//! The label that says when the server wrote the state that carries it.
//!
//! At the embedded server the states wait before they are written, so they are stored with a blank label, which is
//! filled in on the way out. To a genuine server the label is sent with the time of the request. Who writes and who
//! reads are processes of one machine, and share its clock.

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

/// Returns when a state was written, in [`meter::micros`]; 0 if unknown.
pub(crate) fn read(metadata: &ObjectMeta) -> u64 {
    let labels = metadata.labels.as_ref();
    let label = labels.and_then(|labels| labels.get(LABEL));
    label.map_or(0, |label| parse(label))
}

/// Returns what a label says.
pub(crate) fn parse(label: &str) -> u64 {
    label.parse().unwrap_or(0)
}

/// Returns what a label says that is written now.
pub(crate) fn text() -> String {
    format!("{:0width$}", meter::micros(), width = BLANK.len())
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
        // A search in bytes: parsing the line would delay the changes behind it.
        if let Some(at) = self.0.find(json) {
            let start = at + BEFORE.len();
            let mut digits = &mut json[start..start + BLANK.len()];
            // It cannot fail, for the digits have room for three centuries.
            let _ = write!(digits, "{:0width$}", meter::micros(), width = BLANK.len());
        }
    }

    /// Returns when the state in a line was written; 0 if it does not say.
    pub(crate) fn find(&self, json: &[u8]) -> u64 {
        let digits = self
            .0
            .find(json)
            .map(|at| &json[at + BEFORE.len()..])
            .and_then(|digits| digits.get(..BLANK.len()))
            .and_then(|digits| std::str::from_utf8(digits).ok());
        // Zero is older than every run, so a line without a stamp does not count.
        digits.map_or(0, parse)
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
        let found = Stamper::new().find(&json);
        let stamped: Pod = serde_json::from_slice(&json).unwrap();
        let written = read(&stamped.metadata);
        assert!((before..=meter::micros()).contains(&written), "{written}");
        assert_eq!(found, written);
        assert_eq!(Stamper::new().find(b"{}"), 0);
        let blank: Pod = serde_json::from_value(pod(BLANK)).unwrap();
        assert_eq!(read(&blank.metadata), 0);
    }
}
