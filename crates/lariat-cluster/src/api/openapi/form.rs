//! In which forms documents are sent.

use std::cmp::Reverse;

use http::header::HeaderValue;

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    /// There is only a document of v2 in it.
    Protobuf,
}

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const DEPRECATED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

impl Form {
    /// Returns the best of the forms that an `Accept` header names and that there are.
    pub(super) fn negotiate(accept: &str, there_are: &[Self]) -> Option<Self> {
        if accept.trim().is_empty() {
            return Some(Self::Json);
        }
        let mut clauses: Vec<(u16, Option<Self>)> = accept.split(',').map(clause).collect();
        // A stable sort: of two with the same quality the first counts.
        clauses.sort_by_key(|(quality, _)| Reverse(*quality));
        let mut named = clauses.into_iter().filter_map(|(_, form)| form);
        named.find(|form| there_are.contains(form))
    }

    pub(super) fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Json => "application/json",
            Self::Protobuf => PROTOBUF,
        })
    }
}

/// Reads a clause of an `Accept` header: its quality in thousandths, and the form it stands for.
fn clause(text: &str) -> (u16, Option<Form>) {
    let mut parts = text.split(';').map(str::trim);
    let form = match parts.next().unwrap_or_default() {
        "application/json" | "application/*" | "*/*" => Some(Form::Json),
        PROTOBUF | DEPRECATED => Some(Form::Protobuf),
        _ => None,
    };
    let quality: Option<f32> = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok());
    let quality = quality.unwrap_or(1.0).clamp(0.0, 1.0);
    ((quality * 1000.0) as u16, form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_the_best_that_there_is() {
        let both = [Form::Json, Form::Protobuf];
        let check = |accept: &str, there_are: &[Form], expected| {
            assert_eq!(Form::negotiate(accept, there_are), expected, "{accept}");
        };
        check("", &both, Some(Form::Json));
        check("*/*", &both, Some(Form::Json));
        check(PROTOBUF, &both, Some(Form::Protobuf));
        check(DEPRECATED, &both, Some(Form::Protobuf));
        check(
            &format!("application/json, {DEPRECATED}"),
            &both,
            Some(Form::Json),
        );
        check(
            &format!("application/json;q=0.5, {DEPRECATED};q=0.9"),
            &both,
            Some(Form::Protobuf),
        );
        check(
            &format!("{PROTOBUF}, */*;q=0.1"),
            &[Form::Json],
            Some(Form::Json),
        );
        check(PROTOBUF, &[Form::Json], None);
        check("application/yaml, text/html", &both, None);
    }
}
