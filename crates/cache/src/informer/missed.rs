//! Writes of this process to kinds that no cache holds yet.

use std::collections::HashSet;

use parking_lot::Mutex;

/// Resources, each with the path of its API, such as `/apis/apps/v1`.
#[derive(Debug, Default)]
pub(crate) struct MissedWrites(Mutex<HashSet<(String, String)>>);

impl MissedWrites {
    pub(crate) fn add(&self, api_path: &str, plural: &str) {
        let resource = (api_path.to_owned(), plural.to_owned());
        self.0.lock().insert(resource);
    }

    pub(super) fn has(&self, api_path: &str, plural: &str) -> bool {
        let resource = (api_path.to_owned(), plural.to_owned());
        self.0.lock().contains(&resource)
    }
}
