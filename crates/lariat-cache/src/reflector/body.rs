//! Reading the body of a list.

use std::io::Write;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::{HeaderMap, Response, header};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::time;

use super::ANSWER_TIMEOUT;
use super::error::ReflectorError;
use super::source::SourceBody;

/// Reads a whole body, decompressed if it is compressed.
pub(super) async fn read(response: Response<SourceBody>) -> Result<Vec<u8>, ReflectorError> {
    let mut content = Content::new(response.headers())?;
    let mut body = response.into_body();
    while let Some(frame) = next_frame(&mut body).await? {
        content.push(frame.data_ref().map_or(&[], |data| data))?;
    }
    content.finish()
}

/// What has been read so far.
enum Content {
    Plain(Vec<u8>),
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
}

impl Content {
    fn new(headers: &HeaderMap) -> Result<Self, ReflectorError> {
        let encoding = headers.get(header::CONTENT_ENCODING);
        match encoding.map_or(Ok("identity"), |value| value.to_str()) {
            Ok("identity" | "") => Ok(Self::Plain(Vec::new())),
            Ok("gzip") => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            _ => Err(malformed("its Content-Encoding was not asked for")),
        }
    }

    fn push(&mut self, data: &[u8]) -> Result<(), ReflectorError> {
        match self {
            Self::Plain(content) => content.extend_from_slice(data),
            Self::Gzip(decoder) => decoder.write_all(data).map_err(not_gzip)?,
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<u8>, ReflectorError> {
        match self {
            Self::Plain(content) => Ok(content),
            Self::Gzip(decoder) => decoder.finish().map_err(not_gzip),
        }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn not_gzip(error: std::io::Error) -> ReflectorError {
    malformed(&format!("it is not gzip: {error}"))
}

fn malformed(detail: &str) -> ReflectorError {
    ReflectorError::Malformed {
        verb: "list",
        detail: detail.to_owned(),
    }
}

async fn next_frame(body: &mut SourceBody) -> Result<Option<Frame<Bytes>>, ReflectorError> {
    let verb = "list";
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
