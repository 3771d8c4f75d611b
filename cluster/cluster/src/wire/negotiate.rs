//! Negotiates the format of an answer.
//!
//! Source: `NegotiateMediaTypeOptions` in `k8s.io/apiserver/pkg/endpoints/handlers/negotiation`.

use std::cmp::Reverse;

use super::protobuf;
use crate::status::ApiError;

/// The part of an object that is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All of it, under its own kind.
    #[default]
    Whole,
    /// Only the metadata, as `PartialObjectMetadata`; not for lists.
    Metadata,
    /// The same for the items of a list, and only for those.
    MetadataList,
    /// Rows of a `Table`, for single objects too.
    Table,
}

/// The version of `meta.k8s.io` in which tables and bare metadata are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    #[default]
    V1,
    V1beta1,
}

/// The encoding of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Json,
    Yaml,
    Protobuf,
}

/// The formats available for an answer, besides whole objects in JSON and YAML.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    /// Whether the media types are checked before anything else.
    routed: bool,
    protobuf: bool,
    tables: bool,
    /// Whether watches are answered too.
    streams: bool,
}

impl Offers {
    /// Returns the encodings offered for built-in kinds, or those for all others.
    pub(crate) fn of(builtin: bool) -> Self {
        Self {
            routed: builtin,
            protobuf: builtin && protobuf::IS_BUILT,
            tables: true,
            streams: false,
        }
    }

    /// Adds watches, which the routes of collections have.
    pub(crate) fn with_streams(self, streams: bool) -> Self {
        Self { streams, ..self }
    }

    /// Leaves the check of media types to the handler.
    pub(crate) fn unrouted(self) -> Self {
        Self {
            routed: false,
            ..self
        }
    }

    /// Takes tables away if a route has none.
    pub(crate) fn with_tables(self, tables: bool) -> Self {
        Self { tables, ..self }
    }

    fn has(self, encoding: Encoding) -> bool {
        encoding != Encoding::Protobuf || self.protobuf
    }

    /// Refuses a header of which no alternative can be served.
    ///
    /// A genuine server checks the media types of built-in kinds before anything else.
    fn refuse(self, has_media_type: bool) -> ApiError {
        if self.routed && !has_media_type {
            let streams = [WATCH_TYPES].into_iter().filter(|_| self.streams);
            let all: Vec<&str> = [OBJECT_TYPES].into_iter().chain(streams).collect();
            ApiError::not_acceptable(&all.join(", "))
        } else {
            ApiError::only_acceptable(OBJECT_TYPES)
        }
    }
}

/// The media types of objects, as errors list them, also those about custom resources.
pub(crate) const OBJECT_TYPES: &str = if protobuf::IS_BUILT {
    "application/json, application/yaml, application/vnd.kubernetes.protobuf"
} else {
    "application/json, application/yaml"
};

/// The media types of watches, as errors list them.
pub(crate) const WATCH_TYPES: &str = if protobuf::IS_BUILT {
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
} else {
    "application/json;stream=watch"
};

/// The negotiated format of an answer about objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ResponseFormat {
    pub(crate) shape: Shape,
    pub(crate) meta: MetaVersion,
    pub(crate) encoding: Encoding,
}

/// Negotiates the encoding of an error, which has no conversions; JSON if none is left.
///
/// Source: `ErrorNegotiated` in `k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`.
pub(crate) fn encoding_of_errors(accept: &str) -> Encoding {
    let whole = |_, conversion: Option<Conversion<'_>>| conversion.is_none().then_some(());
    let chosen = choose(accept, Offers::of(true).unrouted(), whole);
    chosen.map_or(Encoding::Json, |(encoding, ())| encoding)
}

/// The kind an answer is to be converted to: kind, group and version.
pub(crate) type Conversion<'a> = (&'a str, &'a str, &'a str);

impl MetaVersion {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

impl ResponseFormat {
    /// Negotiates the format: the first alternative of an `Accept` header that this server knows.
    ///
    /// Without a header it is the whole object. A shape that does not suit the request is taken all the same, and
    /// refused when the answer is there: a real server does not go on to the next alternative either.
    pub(crate) fn negotiate(accept: &str, offers: Offers) -> Result<Self, ApiError> {
        let (encoding, (shape, meta)) = choose(accept, offers, |encoding, conversion| {
            let Some((kind, group, version)) = conversion else {
                return Some((Shape::Whole, MetaVersion::V1));
            };
            let meta = match (group, version) {
                ("meta.k8s.io", "v1") => MetaVersion::V1,
                ("meta.k8s.io", "v1beta1") => MetaVersion::V1beta1,
                _ => return None,
            };
            let shape = match kind {
                // Go has no protobuf form of a table.
                "Table" if encoding != Encoding::Protobuf && offers.tables => Shape::Table,
                "PartialObjectMetadata" => Shape::Metadata,
                "PartialObjectMetadataList" => Shape::MetadataList,
                _ => return None,
            };
            Some((shape, meta))
        })?;
        Ok(Self {
            shape,
            meta,
            encoding,
        })
    }
}

/// Returns the best alternative that has a known encoding and that is served.
///
/// `serves` is given the encoding and what the answer is to be converted to. Of equal qualities the first alternative
/// is taken.
pub(crate) fn choose<T>(
    accept: &str,
    offers: Offers,
    serves: impl Fn(Encoding, Option<Conversion<'_>>) -> Option<T>,
) -> Result<(Encoding, T), ApiError> {
    let accept = match accept.trim() {
        "" => "*/*",
        accept => accept,
    };
    let mut alternatives: Vec<Alternative<'_>> =
        accept.split(',').filter_map(Alternative::parse).collect();
    // As goautoneg: wildcards come behind what is named, and the order of the header decides the rest.
    alternatives.sort_by_key(|each| (Reverse(each.quality), each.wildcards));
    let known = || alternatives.iter().filter(|each| offers.has(each.encoding));
    // A route is looked for by the whole name of a media type, or by none.
    let has_media_type = known().any(|each| each.wildcards != 1);
    if offers.routed && !has_media_type {
        return Err(offers.refuse(false));
    }
    let mut allowed = known().filter(|each| matches!(each.stream, "" | "watch"));
    let chosen =
        allowed.find_map(|each| Some((each.encoding, serves(each.encoding, each.conversion())?)));
    chosen.ok_or_else(|| offers.refuse(has_media_type))
}

/// One alternative of an `Accept` header, of an encoding this server has.
struct Alternative<'a> {
    encoding: Encoding,
    /// In thousandths.
    quality: u16,
    wildcards: u8,
    kind: Option<&'a str>,
    group: Option<&'a str>,
    version: Option<&'a str>,
    /// The form of a stream; a server has none but `watch`.
    stream: &'a str,
}

impl<'a> Alternative<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (encoding, wildcards) = match parts.next()? {
            "application/json" => (Encoding::Json, 0),
            "application/yaml" => (Encoding::Yaml, 0),
            "application/vnd.kubernetes.protobuf" => (Encoding::Protobuf, 0),
            // JSON is the first of the media types that a server offers.
            "application/*" => (Encoding::Json, 1),
            "*/*" => (Encoding::Json, 2),
            _ => return None,
        };
        let mut alternative = Self {
            encoding,
            wildcards,
            quality: 1000,
            kind: None,
            group: None,
            version: None,
            stream: "",
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim();
            match name.trim() {
                "as" => alternative.kind = Some(value),
                "g" => alternative.group = Some(value),
                "v" => alternative.version = Some(value),
                "stream" => alternative.stream = value,
                "q" => alternative.quality = quality(value),
                _ => {}
            }
        }
        Some(alternative)
    }

    fn conversion(&self) -> Option<Conversion<'a>> {
        if self.kind.is_none() && self.group.is_none() && self.version.is_none() {
            return None;
        }
        Some((
            self.kind.unwrap_or_default(),
            self.group.unwrap_or_default(),
            self.version.unwrap_or_default(),
        ))
    }
}

fn quality(text: &str) -> u16 {
    let quality: f32 = text.parse().unwrap_or(1.0);
    (quality.clamp(0.0, 1.0) * 1000.0) as u16
}

/// Returns whether a header accepts a media type; a part of the name with an asterisk does not count.
// As go-restful, which looks for the route by it.
pub(crate) fn accepts(header: &str, media_type: &str) -> bool {
    let mut types = header
        .split(',')
        .map(|each| each.split(';').next().unwrap_or_default().trim());
    header.is_empty() || types.any(|each| each == "*/*" || each == media_type)
}

/// Returns whether a client accepts compressed answers.
///
/// Qualities are ignored, as a real server ignores them.
pub(crate) fn accepts_gzip(accept_encoding: &str) -> bool {
    accept_encoding
        .split(',')
        .any(|encoding| encoding.trim() == "gzip")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

    fn check(accept: &str, expected: Option<Shape>) {
        let format = ResponseFormat::negotiate(accept, Offers::of(false));
        assert_eq!(format.ok().map(|format| format.shape), expected, "{accept}");
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
        check(
            &format!("application/json;q=0.5,{partial}"),
            Some(Shape::Metadata),
        );
        let as_protobuf = partial.replace("application/json", protobuf);
        check(&format!("{as_protobuf},{partial}"), Some(Shape::Metadata));
        check(&format!("{table},application/json"), Some(Shape::Table));
        check(&format!("{protobuf},application/json"), Some(Shape::Whole));
        let stream = format!("{protobuf};stream=watch,application/json;stream=watch");
        check(&stream, Some(Shape::Whole));
        let as_protobuf = table.replace("application/json", protobuf);
        check(
            &format!("{as_protobuf},{table},{protobuf}"),
            Some(Shape::Table),
        );
        check(
            &format!("{as_protobuf},application/json"),
            Some(Shape::Whole),
        );
        check(&table.replace("v=v1", "v=v1beta1"), Some(Shape::Table));
        check(&table.replace("Table", "Bogus"), None);
        check(&partial.replace("v=v1", "v=v9"), None);
        check("application/json;as=PartialObjectMetadata", None);
    }

    #[test]
    fn where_there_are_no_tables_the_next_alternative_is_taken() {
        let offers = Offers::of(true).with_tables(false);
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert!(ResponseFormat::negotiate(table, offers).is_err());
        let format = ResponseFormat::negotiate(&format!("{table},application/json"), offers);
        assert_eq!(format.unwrap().shape, Shape::Whole);
    }

    #[test]
    fn the_encoding_is_that_of_the_alternative() {
        for (accept, expected) in [
            ("application/yaml", Encoding::Yaml),
            ("application/yaml;q=0.1,*/*;q=0.5", Encoding::Json),
            ("*/*,application/yaml", Encoding::Yaml),
            ("text/html,*/*", Encoding::Json),
            (PROTOBUF, Encoding::Protobuf),
            (&format!("{PROTOBUF}, */*"), Encoding::Protobuf),
            (&format!("application/json,{PROTOBUF}"), Encoding::Json),
            (
                &format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"),
                Encoding::Protobuf,
            ),
            // There are no tables in protobuf.
            (
                &format!(
                    "{PROTOBUF};as=Table;g=meta.k8s.io;v=v1,application/json;as=Table;g=meta.k8s.io;v=v1"
                ),
                Encoding::Json,
            ),
        ] {
            let offers = Offers {
                routed: true,
                streams: false,
                protobuf: true,
                tables: true,
            };
            let format = ResponseFormat::negotiate(accept, offers).unwrap();
            assert_eq!(format.encoding, expected, "{accept}");
        }
        let custom = ResponseFormat::negotiate(&format!("{PROTOBUF}, */*"), Offers::of(false));
        assert_eq!(custom.unwrap().encoding, Encoding::Json);
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(accept in ".{0,60}|[a-z*/;=,.0-9 ]{0,60}") {
            drop(ResponseFormat::negotiate(&accept, Offers::of(true)));
        }
    }
}
