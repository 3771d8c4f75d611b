//! The encodings of documents, and their negotiation.

use std::cmp::Reverse;

use http::header::HeaderValue;

/// The encoding of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentEncoding {
    Json,
    /// For the document of v2 only.
    Protobuf,
}

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const DEPRECATED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

impl DocumentEncoding {
    /// Returns the best available encoding that an `Accept` header names.
    pub(super) fn negotiate(accept: &str, available: &[Self]) -> Option<Self> {
        if accept.trim().is_empty() {
            return Some(Self::Json);
        }
        let mut clauses: Vec<(u16, Option<Self>)> = accept.split(',').map(clause).collect();
        // A stable sort: of two with the same quality the first counts.
        clauses.sort_by_key(|(quality, _)| Reverse(*quality));
        let mut named = clauses.into_iter().filter_map(|(_, encoding)| encoding);
        named.find(|encoding| available.contains(encoding))
    }

    pub(super) fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Json => "application/json",
            Self::Protobuf => PROTOBUF,
        })
    }
}

/// Reads a clause of an `Accept` header: its quality in thousandths, and the encoding it names.
fn clause(text: &str) -> (u16, Option<DocumentEncoding>) {
    let mut parts = text.split(';').map(str::trim);
    let encoding = match parts.next().unwrap_or_default() {
        "application/json" | "application/*" | "*/*" => Some(DocumentEncoding::Json),
        PROTOBUF | DEPRECATED => Some(DocumentEncoding::Protobuf),
        _ => None,
    };
    let quality: Option<f32> = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok());
    let quality = quality.unwrap_or(1.0).clamp(0.0, 1.0);
    ((quality * 1000.0) as u16, encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_available_encoding_is_taken() {
        let both = [DocumentEncoding::Json, DocumentEncoding::Protobuf];
        let check = |accept: &str, available: &[DocumentEncoding], expected| {
            assert_eq!(
                DocumentEncoding::negotiate(accept, available),
                expected,
                "{accept}"
            );
        };
        check("", &both, Some(DocumentEncoding::Json));
        check("*/*", &both, Some(DocumentEncoding::Json));
        check(PROTOBUF, &both, Some(DocumentEncoding::Protobuf));
        check(DEPRECATED, &both, Some(DocumentEncoding::Protobuf));
        check(
            &format!("application/json, {DEPRECATED}"),
            &both,
            Some(DocumentEncoding::Json),
        );
        check(
            &format!("application/json;q=0.5, {DEPRECATED};q=0.9"),
            &both,
            Some(DocumentEncoding::Protobuf),
        );
        check(
            &format!("{PROTOBUF}, */*;q=0.1"),
            &[DocumentEncoding::Json],
            Some(DocumentEncoding::Json),
        );
        check(PROTOBUF, &[DocumentEncoding::Json], None);
        check("application/yaml, text/html", &both, None);
    }
}
