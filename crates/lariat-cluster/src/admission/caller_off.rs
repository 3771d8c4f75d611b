//! Without the feature `webhooks` none is called.

use std::time::Duration;

use lariat_apimachinery::admission::ClientConfig;

use crate::server::Server;

/// Whether webhooks are called.
pub(super) const IS_BUILT: bool = false;

pub(super) async fn post(
    _: &Server,
    _: &ClientConfig,
    _: Duration,
    _: Vec<u8>,
) -> Result<Vec<u8>, String> {
    Err("the feature `webhooks` is off".to_owned())
}
