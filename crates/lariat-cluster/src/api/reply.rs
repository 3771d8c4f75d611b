//! Responses.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY, WARNING};
use http::{Response, StatusCode};

use super::body::ResponseBody;
use super::status::ApiError;

/// A response on its way out.
#[derive(Debug)]
pub(crate) struct Reply(Response<ResponseBody>);

const JSON: HeaderValue = HeaderValue::from_static("application/json");
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
        let document = [document.as_ref(), b"\n"].concat();
        Self::new(code, JSON, ResponseBody::whole(document))
    }

    pub(crate) fn text(code: StatusCode, text: &'static str) -> Self {
        Self::new(
            code,
            TEXT,
            ResponseBody::whole(Bytes::from_static(text.as_bytes())),
        )
    }

    /// Answers JSON that is not in one piece.
    pub(crate) fn pieces(body: ResponseBody) -> Self {
        Self::new(StatusCode::OK, JSON, body)
    }

    /// Tells the client when to come again, if that is known.
    pub(crate) fn retry_after(mut self, seconds: Option<u64>) -> Self {
        if let Some(seconds) = seconds {
            self.0.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        self
    }

    /// Tells the client what the answer does not: one header each, as RFC 9111 has warnings.
    ///
    /// Source: `net.NewWarningHeader` in `k8s.io/apimachinery/pkg/util/net`.
    pub(crate) fn warnings(mut self, texts: &[String]) -> Self {
        for text in texts {
            let quoted = text.replace('\\', r"\\").replace('"', r#"\""#);
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
                self.0.headers_mut().append(WARNING, value);
            }
        }
        self
    }

    /// Compresses a large answer.
    pub(crate) fn gzip(self) -> Self {
        let (parts, body) = self.0.into_parts();
        let (body, compressed) = body.gzip();
        let mut response = Response::from_parts(parts, body);
        if compressed {
            let headers = response.headers_mut();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        Self(response)
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
