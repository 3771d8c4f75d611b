//! Refusals as responses.

use super::body::HTML;
use crate::fault::{ErrorBody, Refusal};
use crate::status::ApiError;
use crate::wire::body::ResponseBody;
use crate::wire::reply::{Reply, TEXT};

/// Writes a refusal as the server or proxy that it stands for would.
pub(super) fn reply(refusal: &Refusal) -> Reply {
    let code = refusal.code;
    let phrase = code.canonical_reason().unwrap_or("Error");
    let reply = match refusal.body {
        ErrorBody::Status => return ApiError::refused(code, refusal.retry_after).into(),
        ErrorBody::Text => Reply::new(code, TEXT, ResponseBody::whole(format!("{phrase}\n"))),
        ErrorBody::Html => {
            let code_number = code.as_u16();
            let page = format!("<html><body><h1>{code_number} {phrase}</h1></body></html>\n");
            Reply::new(code, HTML, ResponseBody::whole(page))
        }
    };
    reply.retry_after(refusal.retry_after)
}
