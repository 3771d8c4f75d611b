//! What form of an answer a client accepts.

use super::status::ApiError;

/// How much of an object is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All of it, under its own kind.
    #[default]
    Whole,
    /// Only the metadata, as `PartialObjectMetadata`; not for lists.
    Metadata,
    /// The same for the items of a list, and only for those.
    MetadataList,
}

impl Shape {
    /// Takes the first alternative of an `Accept` header this server knows; none is the whole object.
    ///
    /// A shape that does not suit the request is taken all the same, and refused later: a real server
    /// does not go on to the next alternative either.
    pub(crate) fn negotiate(accept: &str) -> Result<Self, ApiError> {
        if accept.trim().is_empty() {
            return Ok(Self::Whole);
        }
        let known = accept.split(',').find_map(Self::of);
        known.ok_or_else(ApiError::not_acceptable)
    }

    fn of(alternative: &str) -> Option<Self> {
        let mut parts = alternative.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        if !matches!(media_type, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let (mut shape, mut group, mut version) = (None, None, None);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim() {
                "as" => shape = Some(value.trim()),
                "g" => group = Some(value.trim()),
                "v" => version = Some(value.trim()),
                _ => {}
            }
        }
        match (shape, group, version) {
            (None, None, None) => Some(Self::Whole),
            (Some("PartialObjectMetadata"), Some("meta.k8s.io"), Some("v1")) => {
                Some(Self::Metadata)
            }
            (Some("PartialObjectMetadataList"), Some("meta.k8s.io"), Some("v1")) => {
                Some(Self::MetadataList)
            }
            _ => None,
        }
    }

    /// Refuses the shape of a list for single objects, and the other way round.
    pub(crate) fn check(self, answers_list: bool) -> Result<(), ApiError> {
        match (self, answers_list) {
            (Self::Metadata, true) | (Self::MetadataList, false) => Err(ApiError::not_acceptable()),
            _ => Ok(()),
        }
    }
}

/// Returns whether a client takes compressed answers; the qualities other servers weigh are ignored, as
/// a real one ignores them.
pub(crate) fn accepts_gzip(accept_encoding: &str) -> bool {
    accept_encoding
        .split(',')
        .any(|encoding| encoding.trim() == "gzip")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str, expected: Option<Shape>) {
        assert_eq!(Shape::negotiate(accept).ok(), expected, "{accept}");
    }

    #[test]
    fn the_first_alternative_that_can_be_served_is_taken() {
        let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        let list = "application/json; as=PartialObjectMetadataList; v=v1; g=meta.k8s.io";
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let protobuf = "application/vnd.kubernetes.protobuf";
        check("", Some(Shape::Whole));
        check("*/*", Some(Shape::Whole));
        check("text/html, application/*;q=0.8", Some(Shape::Whole));
        check(protobuf, None);
        check("text/html", None);
        check(partial, Some(Shape::Metadata));
        check(list, Some(Shape::MetadataList));
        check(
            &format!("{partial},application/json"),
            Some(Shape::Metadata),
        );
        check(&format!("application/json,{partial}"), Some(Shape::Whole));
        let as_protobuf = partial.replace("application/json", protobuf);
        check(&format!("{as_protobuf},{partial}"), Some(Shape::Metadata));
        check(&format!("{table},application/json"), Some(Shape::Whole));
        check(table, None);
        check(&partial.replace("v=v1", "v=v9"), None);
        check("application/json;as=PartialObjectMetadata", None);
    }
}
