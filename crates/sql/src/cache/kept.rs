//! Resuming: informers continue from the objects in the file.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use lariat_cache::{WarmObjects, WarmSource, WarmSourceError};
use lariat_core::ResourceVersion;

use super::blocking::blocking;
use super::kind::Inner;
use crate::read::Page;

/// The objects of a kind that an earlier process has written.
pub(super) struct Kept(pub(super) Arc<Inner>);

impl WarmSource for Kept {
    fn open(
        &self,
        identity: String,
    ) -> BoxFuture<'_, Result<Option<WarmObjects>, WarmSourceError>> {
        let kind = Arc::clone(&self.0);
        Box::pin(async move {
            let reader = kind.reader().await;
            let of = Arc::clone(&kind);
            let version = blocking(move || Ok(reader.kept_version(&of.tables, &identity)?));
            // Incomplete, or read under another identity: the informer lists.
            let Some(version) = version.await? else {
                return Ok(None);
            };
            // A reader is taken for each page only, so that queries are not blocked meanwhile.
            let pages = stream::try_unfold((kind, 0), |(kind, after)| async move {
                let Page { objects, last } = page(&kind, after).await?;
                Ok(last.map(|last| (objects, (kind, last))))
            });
            Ok(Some(WarmObjects {
                version: ResourceVersion::new(&version.to_string()),
                pages: pages.boxed(),
            }))
        })
    }
}

/// Reads the objects after a row.
async fn page(kind: &Arc<Inner>, after: i64) -> Result<Page, WarmSourceError> {
    let (reader, of) = (kind.reader().await, Arc::clone(kind));
    let page = blocking(move || Ok(reader.kept_page(&of.tables, after)?));
    Ok(page.await?)
}
