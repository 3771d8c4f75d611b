//! Lists: reading the whole kind, page by page.

use http::Response;
use lariat_core::ResourceVersion;

use super::end::Stage;
use super::error::ReflectorError;
use super::page::{self, Page};
use super::position::Loading;
use super::reflector::Reflector;
use super::source::SourceBody;
use super::tokens::PageTokens;

/// What follows a page.
struct PageEnd {
    version: ResourceVersion,
    /// The token of the next page.
    continue_token: Option<String>,
}

impl Reflector {
    /// Lists the kind; returns the version from which a watch continues.
    pub(super) async fn list(&mut self) -> Result<ResourceVersion, ReflectorError> {
        let mut loading = self.begin_loading();
        self.progress.list_begun();
        self.log_began(Stage::List, None);
        let version = if std::mem::take(&mut self.in_one_piece) {
            self.list_whole(&mut loading).await?
        } else {
            match self.list_pages(&mut loading).await {
                // The list took longer than its token lives, and the server offered no other token. A list in one piece
                // cannot expire.
                Err(error) if error.is_expired() => {
                    self.restart(&mut loading);
                    self.progress.list_begun();
                    self.list_whole(&mut loading).await?
                }
                // Pages of large objects: the next list has smaller ones.
                Err(error) if error.is_too_large() => {
                    self.queries.shrink_pages();
                    return Err(error);
                }
                other => other?,
            }
        };
        self.end_loading(loading, &version);
        // The cache has no watch until one is open, which may take long.
        self.progress.watch_ended();
        Ok(version)
    }

    async fn list_pages(
        &mut self,
        loading: &mut Loading,
    ) -> Result<ResourceVersion, ReflectorError> {
        // The watch continues from the version of the first page, so it reports changes during later pages.
        let mut first_version = None;
        let (mut token, mut tokens) = (None, PageTokens::default());
        let mut goes_on_inconsistently = false;
        loop {
            let query = self.queries.page(token.as_deref());
            let page = match self.page(loading, query).await {
                // 410 with a token: the list can continue at a newer version, so its pages are not of one version. A
                // watch from the first version corrects that; if that version has expired too, the next list must be in
                // one piece.
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
            let Some(next) = page.continue_token else {
                return Ok(first.clone());
            };
            // Otherwise a broken server or proxy would be listed for ever.
            token = Some(tokens.next(next).map_err(|_| {
                let detail = "the continue token of a page leads to an earlier page";
                ReflectorError::malformed("list", &detail)
            })?);
        }
    }

    async fn list_whole(
        &mut self,
        loading: &mut Loading,
    ) -> Result<ResourceVersion, ReflectorError> {
        let query = self.queries.whole();
        Ok(self.page(loading, query).await?.version)
    }

    /// Reads a page into the store.
    async fn page(
        &mut self,
        loading: &mut Loading,
        query: String,
    ) -> Result<PageEnd, ReflectorError> {
        let response = self.open(self.request(query, false)).await?;
        let body = self.read(response).await?;
        let json = page::valid(body);
        let mut page = Page::parse(&json)?.of_kind(self.progress.gvk())?;
        self.at_version(loading, &page.version);
        for item in std::mem::take(&mut page.items) {
            // In a list, an item without a name does not make the others unreadable.
            match self.load(loading, item, "list") {
                Err(error @ ReflectorError::OtherKind { .. }) => return Err(error),
                Err(error) => self.progress.unreadable(&error),
                Ok(()) => {}
            }
        }
        self.publish_read(loading, page.remaining);
        Ok(PageEnd {
            version: page.version,
            continue_token: page.continue_token,
        })
    }

    /// Reads the body of a list.
    pub(super) async fn read(
        &self,
        response: Response<SourceBody>,
    ) -> Result<Vec<u8>, ReflectorError> {
        let limit = self.reading.list_limit;
        page::read(response, limit, |bytes| self.progress.received(bytes)).await
    }
}
