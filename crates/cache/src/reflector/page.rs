//! A page of a list: its body, and the objects in it.

use std::borrow::Cow;
use std::io::Write;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::{HeaderMap, Response, header};
use http_body::Frame;
use http_body_util::BodyExt;
use lariat_core::{
    Gvk, JsonCursor, RawObjectError, ResourceVersion, Scan, StrictObject, UnexpectedJson,
    without_values,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time;

use super::error::ReflectorError;
use super::source::{ANSWER_TIMEOUT, SourceBody};

/// One page of a list; its objects are not parsed yet.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// The type that the list names.
    named: ListType<'a>,
    pub(super) version: ResourceVersion,
    pub(super) continue_token: Option<String>,
    /// How many objects follow, if the server reports it.
    pub(super) remaining: Option<u64>,
    pub(super) items: Vec<Item<'a>>,
}

/// An object of a list.
#[derive(Debug)]
pub(super) struct Item<'a> {
    json: &'a [u8],
    /// The metadata that was found on the pass over the page.
    ///
    /// `None` if the item has an unusual form.
    scan: Option<Scan<'a>>,
}

impl<'a> Item<'a> {
    pub(super) fn json(&self) -> &'a [u8] {
        self.json
    }

    /// Returns the scan of the object; an item of the usual form has it already.
    pub(super) fn into_scan(self, gvk: &Gvk) -> Result<Scan<'a>, RawObjectError> {
        self.scan.map_or_else(|| Scan::new(self.json, gvk), Ok)
    }

    /// Finds the end of an item in a list, and its metadata on the way.
    fn next(cursor: &mut JsonCursor<'a>) -> Result<Self, UnexpectedJson> {
        let start = cursor.clone();
        if let Ok(scan) = Scan::next(cursor) {
            let json = scan.json();
            return Ok(Self {
                json,
                scan: Some(scan),
            });
        }
        // Skipped as a value of any form, from its beginning: the reader of the item reports the fault.
        *cursor = start;
        cursor.skip_value().map(Self::from)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    metadata: StrictObject<Metadata<'a>>,
    /// Null is an empty list of Go. An object or an error has no items, which is not an empty list.
    #[serde(borrow, deserialize_with = "Option::deserialize")]
    items: Option<Vec<&'a RawValue>>,
}

/// The type of a list: empty if it names none.
#[derive(Debug, Default)]
struct ListType<'a> {
    api_version: Cow<'a, str>,
    kind: Cow<'a, str>,
}

/// Returns whether a list that names a type may be of a kind; both parts may be empty.
pub(crate) fn is_list_of(gvk: &Gvk, api_version: &str, kind: &str) -> bool {
    match kind {
        "PartialObjectMetadataList" => api_version.starts_with("meta.k8s.io/"),
        // As written by hand.
        "List" => true,
        "Status" => false,
        _ => {
            let name = kind.strip_suffix("List");
            // A CRD may choose the name of its list; the groups of CRDs have a dot.
            let is_named = name == Some(gvk.kind()) || gvk.group().contains('.');
            let is_version = api_version.is_empty() || api_version == gvk.api_version();
            (kind.is_empty() || is_named) && is_version
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    #[serde(borrow, default, rename = "continue")]
    continue_token: Cow<'a, str>,
    #[serde(default)]
    remaining_item_count: Option<u64>,
}

/// Replaces invalid UTF-8 in a page, as Go's decoder does.
///
/// Otherwise an invalid byte in one object would make all others unreadable.
pub(super) fn valid(json: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(json) {
        Ok(json) => json.into_bytes(),
        Err(error) => String::from_utf8_lossy(error.as_bytes())
            .into_owned()
            .into_bytes(),
    }
}

impl<'a> From<&'a [u8]> for Item<'a> {
    fn from(json: &'a [u8]) -> Self {
        Self { json, scan: None }
    }
}

impl<'a> Page<'a> {
    /// Parses a page.
    ///
    /// The usual form takes one pass, which finds the items and their metadata. Any other form is left to a JSON
    /// parser, which also reports what is wrong with the page.
    pub(super) fn parse(json: &'a [u8]) -> Result<Self, ReflectorError> {
        let (named, metadata, items) = match Self::usual(json) {
            Ok(page) => page,
            Err(UnexpectedJson) => Self::whole(json)?,
        };
        if metadata.resource_version.is_empty() {
            let detail = "the list has no resource version, so that no watch can follow it; the API may serve lists only";
            return Err(ReflectorError::malformed("list", &detail));
        }
        Ok(Self {
            named,
            version: ResourceVersion::new(&metadata.resource_version),
            continue_token: Some(metadata.continue_token.into_owned()).filter(|t| !t.is_empty()),
            remaining: metadata.remaining_item_count,
            items,
        })
    }

    /// Refuses a list of something else: the objects that it does not contain would count as deleted.
    pub(super) fn of_kind(self, gvk: &Gvk) -> Result<Self, ReflectorError> {
        if is_list_of(gvk, &self.named.api_version, &self.named.kind) {
            Ok(self)
        } else {
            Err(ReflectorError::OtherKind { verb: "list" })
        }
    }

    fn usual(json: &'a [u8]) -> Result<Parts<'a>, UnexpectedJson> {
        let mut cursor = JsonCursor::new(json);
        let (mut metadata, mut items) = (None, None);
        let mut named = ListType::default();
        cursor.enter_object()?;
        while let Some(name) = cursor.next_member()? {
            // A member that appears twice is ambiguous.
            let is_unusual = match name {
                b"metadata" => metadata.replace(cursor.skip_value()?).is_some(),
                b"items" => items.replace(Self::list(&mut cursor)?).is_some(),
                b"kind" => set(&mut named.kind, cursor.skip_value()?),
                b"apiVersion" => set(&mut named.api_version, cursor.skip_value()?),
                // A damaged or escaped name may be `items`: without its items, the list would be taken for empty and
                // delete all objects.
                name => !name.iter().all(u8::is_ascii_alphanumeric) || is_odd(cursor.skip_value()?),
            };
            if is_unusual {
                return Err(UnexpectedJson);
            }
        }
        cursor.end()?;
        let metadata = serde_json::from_slice(metadata.ok_or(UnexpectedJson)?);
        let StrictObject(metadata) = metadata.map_err(|_| UnexpectedJson)?;
        Ok((named, metadata, items.ok_or(UnexpectedJson)?))
    }

    fn list(cursor: &mut JsonCursor<'a>) -> Result<Vec<Item<'a>>, UnexpectedJson> {
        let mut items = Vec::new();
        cursor.enter_list()?;
        while cursor.next_item()? {
            items.push(Item::next(cursor)?);
        }
        Ok(items)
    }

    fn whole(json: &'a [u8]) -> Result<Parts<'a>, ReflectorError> {
        let StrictObject(envelope) = serde_json::from_slice::<StrictObject<Envelope<'_>>>(json)
            .map_err(|error| {
                ReflectorError::malformed("list", &without_values(&error.to_string()))
            })?;
        let items = envelope
            .items
            .unwrap_or_default()
            .into_iter()
            .map(|item| Item::from(item.get().as_bytes()));
        let named = ListType {
            api_version: envelope.api_version.unwrap_or_default(),
            kind: envelope.kind.unwrap_or_default(),
        };
        Ok((named, envelope.metadata.0, items.collect()))
    }
}

/// The type, the metadata and the items of a page.
type Parts<'a> = (ListType<'a>, Metadata<'a>, Vec<Item<'a>>);

/// Sets a text that may occur once; returns whether its JSON is unusual.
fn set<'a>(text: &mut Cow<'a, str>, json: &'a [u8]) -> bool {
    match serde_json::from_slice::<&str>(json) {
        Ok(read) if text.is_empty() => *text = Cow::Borrowed(read),
        _ => return true,
    }
    false
}

/// Returns whether a value contains bytes that are invalid within a JSON string.
fn is_odd(json: &[u8]) -> bool {
    json.iter().any(|byte| *byte < b' ')
}

/// Reads a whole body of at most `limit` bytes and decompresses it; `received` gets the length of each part.
///
/// The limit is that of the decompressed body.
pub(super) async fn read(
    response: Response<SourceBody>,
    limit: usize,
    received: impl Fn(usize),
) -> Result<Vec<u8>, ReflectorError> {
    let mut content = Content::new(response.headers(), limit)?;
    let mut body = response.into_body();
    while let Some(frame) = next_frame(&mut body).await? {
        let data = frame.data_ref().map_or(&[][..], |data| data);
        received(data.len());
        content.push(data)?;
    }
    content.finish()
}

/// The body as read so far.
enum Content {
    Plain(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
}

/// Bytes up to a limit.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Bounded {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        if data.len() > self.limit - self.bytes.len() {
            return Err(std::io::Error::other(TooLarge { limit: self.limit }));
        }
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The error of a body above the limit, as it passes through the decoder.
#[derive(Debug, thiserror::Error)]
#[error("more than {limit} bytes")]
struct TooLarge {
    limit: usize,
}

impl Content {
    fn new(headers: &HeaderMap, limit: usize) -> Result<Self, ReflectorError> {
        let bytes = Vec::new();
        let bounded = Bounded { bytes, limit };
        match encoding(headers) {
            Some("identity" | "") => Ok(Self::Plain(bounded)),
            Some("gzip") => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(bounded)))),
            _ => Err(ReflectorError::malformed("list", &UNEXPECTED_ENCODING)),
        }
    }

    fn push(&mut self, data: &[u8]) -> Result<(), ReflectorError> {
        let written = match self {
            Self::Plain(content) => content.write_all(data),
            Self::Gzip(decoder) => decoder.write_all(data),
        };
        written.map_err(not_gzip)
    }

    fn finish(self) -> Result<Vec<u8>, ReflectorError> {
        match self {
            Self::Plain(content) => Ok(content.bytes),
            Self::Gzip(decoder) => decoder.finish().map_err(not_gzip).map(|all| all.bytes),
        }
    }
}

pub(super) const UNEXPECTED_ENCODING: &str = "unexpected Content-Encoding";

/// Returns the encoding of a body; `None` if it is not text.
pub(super) fn encoding(headers: &HeaderMap) -> Option<&str> {
    let encoding = headers.get(header::CONTENT_ENCODING);
    encoding.map_or(Some("identity"), |value| value.to_str().ok())
}

#[allow(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn not_gzip(error: std::io::Error) -> ReflectorError {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    if let Some(TooLarge { limit }) = cause {
        let (verb, part, limit) = ("list", "list", *limit);
        return ReflectorError::TooLarge { verb, part, limit };
    }
    ReflectorError::malformed("list", &format_args!("invalid gzip: {error}"))
}

async fn next_frame(body: &mut SourceBody) -> Result<Option<Frame<Bytes>>, ReflectorError> {
    let verb = "list";
    // For each frame, so that a list may take as long as it needs if it makes progress.
    match time::timeout(ANSWER_TIMEOUT, body.frame()).await {
        Ok(frame) => frame
            .transpose()
            .map_err(|source| ReflectorError::Cut { verb, source }),
        Err(_) => Err(ReflectorError::Silent {
            verb,
            after: ANSWER_TIMEOUT,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Page<'_>, ReflectorError> {
        Page::parse(json.as_bytes())
    }

    #[test]
    fn a_page_says_where_the_next_one_is() {
        let page = parse(
            r#"{"metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":2},
                "items":[{"metadata":{"name":"a"}},{"metadata":5}]}"#,
        )
        .unwrap();
        assert_eq!(page.items.len(), 2);
        assert_eq!(
            (page.continue_token.as_deref(), page.remaining),
            (Some("t"), Some(2))
        );
    }

    #[test]
    fn go_s_empty_list_is_null() {
        let page =
            parse(r#"{"metadata":{"resourceVersion":"7","continue":""},"items":null}"#).unwrap();
        assert!(page.items.is_empty() && page.continue_token.is_none());
    }

    #[test]
    fn items_are_found_whatever_is_in_them() {
        let items = [
            r#"{"metadata":{"name":"a"},"spec":{"text":"]}\"{"}}"#,
            r#"{"spec":{},"kind":"Pod","metadata":{"name":"b"},"apiVersion":"v1"}"#,
            r#"{"metadata":{"name":""}}"#,
            r#"{"metadata":{"name":"c"},"metadata":{}}"#,
            "5",
            "[{}]",
        ];
        let list = items.join(" , ");
        for json in [
            format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{list}]}}"#),
            format!(
                r#"{{"kind":"PodList","items":[ {list} ],"metadata":{{"resourceVersion":"7"}}}}"#
            ),
            format!(r#"{{"it\u0065ms":[{list}],"metadata":{{"resourceVersion":"7"}}}}"#),
        ] {
            let page = parse(&json).unwrap();
            let found: Vec<&[u8]> = page.items.iter().map(Item::json).collect();
            assert_eq!(found, items.map(str::as_bytes), "{json}");
        }
    }

    #[test]
    fn list_of_other_kind_or_version_is_refused() {
        let deployment = Gvk::new("apps", "v1", "Deployment");
        let widget = Gvk::new("demo.dev", "v1", "Widget");
        for (gvk, version, kind, expected) in [
            (&deployment, "apps/v1", "DeploymentList", true),
            (&deployment, "", "", true),
            (&deployment, "v1", "List", true),
            (
                &deployment,
                "meta.k8s.io/v1",
                "PartialObjectMetadataList",
                true,
            ),
            (&deployment, "apps/v1", "ReplicaSetList", false),
            (&deployment, "apps/v1beta1", "DeploymentList", false),
            (&deployment, "v1", "Status", false),
            (&deployment, "apps/v1", "Deployment", false),
            (&widget, "demo.dev/v1", "Widgets", true),
            (&widget, "demo.dev/v2", "WidgetList", false),
            (&widget, "v1", "Status", false),
        ] {
            for rest in ["", r#","x\u0020":1"#] {
                let json = format!(
                    r#"{{"kind":"{kind}","apiVersion":"{version}","metadata":{{"resourceVersion":"7"}},"items":[]{rest}}}"#
                );
                let is_taken = parse(&json).unwrap().of_kind(gvk).is_ok();
                assert_eq!(is_taken, expected, "{gvk}: {json}");
            }
        }
    }

    #[test]
    fn an_item_of_the_usual_form_is_looked_at_once() {
        let item = r#"{"metadata":{"name":"a","labels":{}},"spec":{"kind":{},"metadata":{}}}"#;
        let json = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{item},{item}]}}"#);
        for item in parse(&json).unwrap().items {
            assert_eq!(item.scan.expect("it was found").name(), "a");
        }
    }

    #[test]
    fn a_page_that_ends_too_early_is_refused() {
        let json = r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}"#;
        for end in 0..json.len() {
            assert!(parse(&json[..end]).is_err(), "{}", &json[..end]);
        }
        assert!(parse(json).is_ok());
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for json in [
            "",
            "[]",
            "{}",
            r#"{"items":[]}"#,
            // An object, and a list without items.
            r#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}"#,
            r#"{"kind":"PodList","metadata":{"resourceVersion":"7"}}"#,
            "<html>",
            r#"[{"resourceVersion":"7"},[]]"#,
            r#"{"metadata":["7"],"items":[]}"#,
            r#"{"metadata":{"resourceVersion":"7"},"items":{}}"#,
            r#"{"metadata":{"resourceVersion":"7"},"items":[],"items":[]}"#,
            r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"},"spec":}]}"#,
        ] {
            assert!(parse(json).is_err(), "{json}");
        }
    }

    fn response(encoding: &'static str, body: &[u8]) -> Response<SourceBody> {
        let pieces = body
            .chunks(1000)
            .map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece))));
        let pieces: Vec<_> = pieces.collect();
        let body = http_body_util::StreamBody::new(futures::stream::iter(pieces));
        let mut response = Response::new(body.boxed_unsync());
        let encoding = http::HeaderValue::from_static(encoding);
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, encoding);
        response
    }

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn gzip_bomb_ends_with_an_error_that_names_the_limit() {
        let limit = 1 << 20;
        // Members of a gzip stream follow each other without end.
        let bomb = gzip(&vec![b' '; 64 << 20]).repeat(4);
        let error = read(response("gzip", &bomb), limit, |_| {})
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "list: the answer is too large: a list has more than 1048576 bytes"
        );
        let headers = response("gzip", &[]).headers().clone();
        let mut content = Content::new(&headers, limit).unwrap();
        assert!(bomb.chunks(1000).any(|piece| content.push(piece).is_err()));
        let Content::Gzip(decoder) = content else {
            panic!("it is gzip");
        };
        let buffered = decoder.get_ref().bytes.capacity();
        assert!(buffered <= 2 * limit, "{buffered}");
    }

    #[tokio::test]
    async fn list_of_exactly_the_limit_is_read() {
        let text = vec![b'x'; 100_000];
        for (encoding, body) in [("identity", text.clone()), ("gzip", gzip(&text))] {
            let whole = read(response(encoding, &body), text.len(), |_| {}).await;
            assert_eq!(whole.unwrap().len(), text.len());
            let error = read(response(encoding, &body), text.len() - 1, |_| {}).await;
            assert!(error.unwrap_err().is_too_large(), "{encoding}");
        }
    }
}
