//! Lists: reading the whole kind, page by page.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use http_body_util::BodyExt;
use lariat_core::ResourceVersion;
use tokio::time::{self, Instant};

use super::error::ReflectorError;
use super::page::Page;
use super::source::SourceBody;
use super::{ANSWER_TIMEOUT, Reflector, query};
use crate::informer::Phase;
use crate::store::Listing;

/// How often a long list says how far it is.
const PROGRESS_PERIOD: Duration = Duration::from_secs(5);

impl Reflector {
    /// Reads the whole kind and returns the version of the list.
    pub(super) async fn list(&mut self) -> Result<ResourceVersion, ReflectorError> {
        let initial = self.progress.phase() != Phase::Synced;
        let started = Instant::now();
        let mut listing = self.begin_listing(initial);
        if initial {
            let (loaded, total) = (0, None);
            self.progress.enter(Phase::Listing { loaded, total });
        }
        let version = match self.list_pages(listing, initial).await {
            // The list took longer than its token lives: everything at once cannot expire. It is
            // another list, for what the first pages showed may be gone.
            Err(error) if error.is_expired() => {
                listing = self.begin_listing(initial);
                self.list_whole(listing, initial).await?
            }
            other => other?,
        };
        self.publisher.end_listing(listing);
        if initial {
            let objects = self.publisher.store().len();
            let kind = self.progress.gvk();
            tracing::info!(%kind, objects, elapsed = ?started.elapsed(), "cache is filled");
            self.progress.enter(Phase::Synced);
        }
        Ok(version)
    }

    fn begin_listing(&self, initial: bool) -> Listing {
        self.progress.list_begun();
        self.publisher.begin_listing(initial)
    }

    async fn list_pages(
        &self,
        listing: Listing,
        initial: bool,
    ) -> Result<ResourceVersion, ReflectorError> {
        let mut loaded = 0;
        let mut said = Instant::now();
        let mut first_version = None;
        let mut token: Option<String> = None;
        loop {
            let page = self.page(&query::page(token.as_deref())).await?;
            loaded += page.objects.len();
            if initial {
                let total = page
                    .remaining
                    .map(|remaining| loaded.saturating_add(remaining as usize));
                self.progress.enter(Phase::Listing { loaded, total });
                if said.elapsed() >= PROGRESS_PERIOD {
                    tracing::info!(kind = %self.progress.gvk(), loaded, total, "filling the cache");
                    said = Instant::now();
                }
            }
            token.clone_from(&page.continue_token);
            // What changes while later pages are read is told by a watch from the first page on.
            let version = first_version.get_or_insert(page.version.clone()).clone();
            self.take_in(listing, page);
            if token.is_none() {
                return Ok(version);
            }
        }
    }

    async fn list_whole(
        &self,
        listing: Listing,
        initial: bool,
    ) -> Result<ResourceVersion, ReflectorError> {
        let page = self.page(query::whole()).await?;
        let (version, loaded) = (page.version.clone(), page.objects.len());
        if initial {
            let total = Some(loaded);
            self.progress.enter(Phase::Listing { loaded, total });
        }
        self.take_in(listing, page);
        Ok(version)
    }

    fn take_in(&self, listing: Listing, page: Page) {
        for (key, error) in &page.unreadable {
            self.progress.unreadable(error);
            if let Some(key) = key {
                self.publisher.store().list_unreadable(listing, key);
            }
        }
        self.publisher.list_page(listing, page.objects);
    }

    async fn page(&self, query: &str) -> Result<Page, ReflectorError> {
        let mut body = self.open("list", query).await?.into_body();
        let mut json = BytesMut::new();
        while let Some(frame) = next_frame(&mut body).await? {
            json.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        }
        Page::parse(&json, self.progress.gvk())
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
