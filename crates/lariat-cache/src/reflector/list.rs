//! Lists: reading the whole kind, page by page.

use lariat_core::ResourceVersion;
use lariat_flight::Reflected;

use super::error::ReflectorError;
use super::loading::Loading;
use super::page::{self, Page};
use super::reflector::Reflector;

impl Reflector {
    /// Reads the whole kind; returns the version from which a watch continues.
    pub(super) async fn list(&mut self) -> Result<ResourceVersion, ReflectorError> {
        let mut loading = self.begin_loading();
        self.progress.list_begun();
        let whole = self.in_one_piece;
        self.record(|_| Reflected::ListBegan { whole });
        let version = if std::mem::take(&mut self.in_one_piece) {
            self.list_whole(&mut loading).await?
        } else {
            match self.list_pages(&mut loading).await {
                // The list took longer than its token lives, and the server has no other. A list in one piece cannot
                // expire.
                Err(error) if error.is_expired() => {
                    self.restart(&mut loading);
                    self.progress.list_begun();
                    self.record(|_| Reflected::ListBegan { whole: true });
                    self.list_whole(&mut loading).await?
                }
                other => other?,
            }
        };
        self.end_loading(loading, &version);
        Ok(version)
    }

    async fn list_pages(
        &mut self,
        loading: &mut Loading,
    ) -> Result<ResourceVersion, ReflectorError> {
        // Changes during later pages are reported by a watch from the version of the first page.
        let mut first_version = None;
        let mut token: Option<String> = None;
        let mut goes_on_inconsistently = false;
        loop {
            let query = self.queries.page(token.as_deref());
            let page = match self.page(loading, query).await {
                // The list can continue at a newer version. If its first version has also expired for a watch, only a
                // list in one piece is consistent.
                Err(ReflectorError::Expired {
                    continue_token: Some(inconsistent),
                    ..
                }) if !goes_on_inconsistently => {
                    goes_on_inconsistently = true;
                    self.in_one_piece = true;
                    token = Some(inconsistent);
                    continue;
                }
                other => other?,
            };
            let first = first_version.get_or_insert(page.version);
            match page.continue_token {
                Some(next) if token.as_ref() == Some(&next) => {
                    return Err(ReflectorError::Malformed {
                        verb: "list",
                        detail: "a page is followed by itself".to_owned(),
                    });
                }
                Some(next) => token = Some(next),
                None => return Ok(first.clone()),
            }
        }
    }

    async fn list_whole(
        &mut self,
        loading: &mut Loading,
    ) -> Result<ResourceVersion, ReflectorError> {
        let query = self.queries.whole();
        Ok(self.page(loading, query).await?.version)
    }

    /// Reads a page into the store; the returned page has no items.
    async fn page(
        &mut self,
        loading: &mut Loading,
        query: String,
    ) -> Result<Page<'static>, ReflectorError> {
        let response = self.open(self.request(query, false)).await?;
        let body = page::read(response, |bytes| self.progress.received(bytes)).await?;
        let json = page::valid(body);
        let mut page = Page::parse(&json)?;
        self.record(|_| Reflected::Page {
            items: u32::try_from(page.items.len()).unwrap_or(u32::MAX),
            version: (&page.version).into(),
            more: page.continue_token.is_some(),
        });
        self.at_version(loading, &page.version);
        for item in std::mem::take(&mut page.items) {
            // In a list, an item without a name does not affect the others.
            if let Err(error) = self.load(loading, item) {
                self.progress.unreadable(&error);
            }
        }
        self.show(loading, page.remaining);
        Ok(Page {
            items: Vec::new(),
            version: page.version,
            continue_token: page.continue_token,
            remaining: page.remaining,
        })
    }
}
