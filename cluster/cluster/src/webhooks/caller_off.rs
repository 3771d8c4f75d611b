//! Without the feature `webhooks` none is called.

use std::time::Duration;

use lariat_apimachinery::client_config::ClientConfig;

use super::PostError;
use crate::server::Server;

/// Whether webhooks are called.
pub(crate) const IS_BUILT: bool = false;

pub(crate) async fn post(
    server: &Server,
    _: &ClientConfig,
    _: Duration,
    _: Vec<u8>,
) -> Result<Vec<u8>, PostError> {
    let known = server.services.len();
    Err(PostError::Call(format!(
        "the feature `webhooks` is off; {known} Services are known"
    )))
}
