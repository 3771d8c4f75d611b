//! Responses.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, RETRY_AFTER,
    VARY, WARNING,
};
use http::{Response, StatusCode};
use lariat_core::yaml;

use super::{gzip, protobuf};
use crate::status::ApiError;
use crate::wire::body::ResponseBody;
use crate::wire::negotiate::Encoding;

/// A response on its way out.
#[derive(Debug)]
pub(crate) struct Reply(Response<ResponseBody>);

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/vnd.kubernetes.protobuf");
const PROTOBUF_STREAM: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch");
const UNCACHED: HeaderValue = HeaderValue::from_static("no-cache, private");
pub(crate) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

impl Reply {
    pub(crate) fn new(code: StatusCode, content_type: HeaderValue, body: ResponseBody) -> Self {
        let mut response = Response::new(body);
        *response.status_mut() = code;
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        Self(response)
    }

    /// Answers one JSON document; a line feed follows it, as Go's encoder has it.
    pub(crate) fn json(code: StatusCode, document: impl AsRef<[u8]>) -> Self {
        Self::json_of(code, &[document.as_ref()])
    }

    /// Answers one JSON document that is in parts.
    pub(crate) fn json_of(code: StatusCode, parts: &[&[u8]]) -> Self {
        let length = parts.iter().map(|part| part.len()).sum::<usize>() + 1;
        let mut document = Vec::with_capacity(length);
        for part in parts {
            document.extend_from_slice(part);
        }
        document.push(b'\n');
        Self::new(code, JSON, ResponseBody::whole(document))
    }

    pub(crate) fn text(code: StatusCode, text: impl Into<Bytes>) -> Self {
        Self::new(code, TEXT, ResponseBody::whole(text))
    }

    /// Answers a compressed document, expanded for clients that need it.
    pub(crate) fn compressed(content_type: HeaderValue, document: Bytes, accepts: bool) -> Self {
        if !accepts {
            let body = ResponseBody::whole(gzip::expand(&document));
            return Self::new(StatusCode::OK, content_type, body);
        }
        let body = ResponseBody::whole(document);
        let mut reply = Self::new(StatusCode::OK, content_type, body);
        reply.note_compressed();
        reply
    }

    /// Answers nothing but a code.
    pub(crate) fn empty(code: StatusCode) -> Self {
        let mut response = Response::new(ResponseBody::whole(Bytes::new()));
        *response.status_mut() = code;
        Self(response)
    }

    /// Sets the `ETag` of the answer, and its `Vary`.
    pub(crate) fn tag(mut self, tag: &str) -> Self {
        let headers = self.0.headers_mut();
        if let Ok(tag) = HeaderValue::from_str(tag) {
            headers.insert(ETAG, tag);
        }
        headers.append(VARY, HeaderValue::from_static("Accept"));
        self
    }

    /// Sets a header; a value that cannot be one is left out.
    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.0.headers_mut().insert(name, value);
        }
        self
    }

    /// Sets `Cache-Control` to no caching, unless the answer has one.
    ///
    /// Source: `WithCacheControl` in `k8s.io/apiserver/pkg/endpoints/filters`.
    pub(crate) fn uncached(mut self) -> Self {
        let headers = self.0.headers_mut();
        if !headers.contains_key(CACHE_CONTROL) {
            headers.insert(CACHE_CONTROL, UNCACHED);
        }
        self
    }

    /// Answers JSON that is not in one piece.
    pub(crate) fn pieces(body: ResponseBody) -> Self {
        Self::new(StatusCode::OK, JSON, body)
    }

    /// Answers a list in protobuf.
    pub(crate) fn protobuf(list: Bytes) -> Self {
        Self::new(StatusCode::OK, PROTOBUF, ResponseBody::whole(list))
    }

    /// Answers a watch in protobuf.
    pub(crate) fn protobuf_stream(body: ResponseBody) -> Self {
        Self::new(StatusCode::OK, PROTOBUF_STREAM, body)
    }

    /// Adds `Retry-After`, if the time is known.
    pub(crate) fn retry_after(mut self, seconds: Option<u64>) -> Self {
        if let Some(seconds) = seconds {
            self.0.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        self
    }

    /// Adds warnings, each as a header as in RFC 9111.
    ///
    /// They may have any characters but control characters; a warning with one is left out.
    ///
    /// Source: `net.NewWarningHeader` in `k8s.io/apimachinery/pkg/util/net`.
    pub(crate) fn warnings(mut self, texts: &[String]) -> Self {
        for text in texts {
            let quoted = text.replace('\\', r"\\").replace('"', r#"\""#);
            let value = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes());
            if let Ok(value) = value
                && !text.contains(char::is_control)
            {
                self.0.headers_mut().append(WARNING, value);
            }
        }
        self
    }

    /// Writes the answer in another encoding, unless it is a stream or no JSON at all.
    pub(crate) fn encoded(self, encoding: Encoding) -> Self {
        let is_json = self.0.headers().get(CONTENT_TYPE) == Some(&JSON);
        // Compressed documents are those of OpenAPI, whose form is negotiated elsewhere.
        if encoding == Encoding::Json || !is_json || self.is_compressed() {
            return self;
        }
        let (parts, body) = self.0.into_parts();
        let bytes = match body.into_bytes() {
            Ok(bytes) => bytes,
            Err(body) => return Self(Response::from_parts(parts, body)),
        };
        let (written, content_type) = match encoding {
            Encoding::Protobuf => (protobuf::write(&bytes), PROTOBUF),
            _ => {
                let document = serde_json::from_slice(&bytes);
                (
                    document.ok().map(|document| yaml::write(&document).into()),
                    YAML,
                )
            }
        };
        // What has no form in the other encoding stays JSON.
        let Some(written) = written else {
            return Self(Response::from_parts(parts, ResponseBody::whole(bytes)));
        };
        let mut response = Response::from_parts(parts, ResponseBody::whole(written));
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        Self(response)
    }

    /// Compresses a large answer.
    pub(crate) fn gzip(self) -> Self {
        if self.is_compressed() {
            return self;
        }
        let (parts, body) = self.0.into_parts();
        let (body, compressed) = body.gzip();
        let mut reply = Self(Response::from_parts(parts, body));
        if compressed {
            reply.note_compressed();
        }
        reply
    }

    fn is_compressed(&self) -> bool {
        self.0.headers().contains_key(CONTENT_ENCODING)
    }

    fn note_compressed(&mut self) {
        let headers = self.0.headers_mut();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }

    /// Answers with another body.
    pub(crate) fn map(self, change: impl FnOnce(ResponseBody) -> ResponseBody) -> Self {
        Self(self.0.map(change))
    }

    pub(crate) fn code(&self) -> StatusCode {
        self.0.status()
    }

    pub(crate) fn into_response(self) -> Response<ResponseBody> {
        self.0
    }
}

impl From<ApiError> for Reply {
    fn from(error: ApiError) -> Self {
        if error.plain {
            return Self::text(error.code, "404 page not found\n");
        }
        Self::json(error.code, error.json()).retry_after(error.retry_after())
    }
}
