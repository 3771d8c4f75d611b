//! The SQL cache behind an informer.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use lariat_cache::SharedCacheFactory;
use lariat_client::{Http2, from_config};
use lariat_core::Gvk;
use lariat_seal::{LocalKeys, Sealing};
use lariat_sql::{Field, FieldType, Query, Schema, SqlCache, SqlKind};

use super::questions::{PAGE, Question};
use crate::subjects::lariat_pods;
use crate::target::Target;

/// How long the cache may take to be where it is asked for.
const TIMEOUT: Duration = Duration::from_secs(1_200);

/// The pods of a server in a cache.
pub(super) struct Cached {
    pods: SqlKind,
    /// What it was asked last that needs a cursor, and that cursor.
    cursor: Option<(&'static str, String)>,
    file: Option<DatabaseFile>,
    _running: (SharedCacheFactory, SqlCache),
}

impl Cached {
    pub(super) async fn start(subject: &str, target: &Target) -> Result<Self> {
        let client = from_config(target.config().await?, Http2::default()).await?;
        let factory = SharedCacheFactory::new(client);
        // It needs no discovery then.
        let _pods = lariat_pods(&factory);
        let pod = Gvk::new("", "v1", "Pod");
        let mut builder = SqlCache::builder(&factory)
            .kind(Schema::new(pod.clone(), fields()?)?)
            .wait_timeout(TIMEOUT);
        let file = subject.starts_with("file").then(DatabaseFile::new);
        if let Some(DatabaseFile(path)) = &file {
            builder = builder.in_file(path);
        }
        if subject.ends_with("-sealed") {
            let key: [u8; 32] = std::array::from_fn(|_| fastrand::u8(..));
            builder = builder.sealed(Sealing::of_everything(LocalKeys::from_bytes(&key)?));
        }
        let sql = builder.start().await?;
        factory.start();
        Ok(Self {
            pods: sql.kind(&pod)?,
            cursor: None,
            file,
            _running: (factory, sql),
        })
    }

    pub(super) async fn reach(&self, version: Option<u64>) -> Result<()> {
        let mut query = Query::new().limit(1);
        if let Some(version) = version {
            query = query.at_least(version.to_string().parse()?);
        }
        self.pods.query(&query).await?;
        Ok(())
    }

    pub(super) async fn ask(&mut self, question: &Question, turn: usize) -> Result<usize> {
        let mut query = (question.query)(turn);
        if question.skip > 0 {
            let cursor = self.cursor_of(question, &query).await?;
            query = query.limit(PAGE as u64).after(&cursor);
        }
        let answer = self.pods.query(&query).await?;
        let counts = answer.summaries.iter().map(Vec::len).sum::<usize>();
        // The total of a page is not what was asked for, unless there are only counts.
        let total = answer.total.filter(|_| answer.objects.is_empty());
        Ok((answer.objects.len() + counts).max(total.unwrap_or(0).try_into()?))
    }

    /// Returns the cursor behind the objects that are passed over.
    async fn cursor_of(&mut self, question: &Question, query: &Query) -> Result<String> {
        // A program that pages keeps the cursor of the page before, so finding it is not part of the question.
        if let Some((case, cursor)) = &self.cursor
            && *case == question.case
        {
            return Ok(cursor.clone());
        }
        let skipped = query.clone().limit(question.skip as u64);
        let cursor = self
            .pods
            .query(&skipped)
            .await?
            .next
            .context("there are pods behind the page")?;
        self.cursor = Some((question.case, cursor.clone()));
        Ok(cursor)
    }

    pub(super) fn file_mb(&self) -> Option<f64> {
        self.file.as_ref().map(DatabaseFile::mb)
    }
}

fn fields() -> Result<[Field; 4]> {
    Ok([
        Field::path("spec.nodeName", FieldType::Text)?,
        Field::path("status.phase", FieldType::Text)?,
        Field::path("status.podIP", FieldType::Ip)?,
        Field::path("spec.containers[*].image", FieldType::Text)?.searchable(),
    ])
}

/// A database that is deleted at the end.
struct DatabaseFile(PathBuf);

impl DatabaseFile {
    fn new() -> Self {
        let name = format!("lariat-bench-{:016x}.db", fastrand::u64(..));
        Self(std::env::temp_dir().join(name))
    }

    /// Returns its files: the database, its log, the index of that, and the lock.
    fn paths(&self) -> [PathBuf; 4] {
        let path = self.0.display();
        ["", "-wal", "-shm", "-lock"].map(|suffix| Path::new(&format!("{path}{suffix}")).to_owned())
    }

    fn mb(&self) -> f64 {
        let sizes = self.paths().map(|path| {
            let metadata = std::fs::metadata(path);
            metadata.map_or(0, |metadata| metadata.len())
        });
        sizes.iter().sum::<u64>() as f64 / 1e6
    }
}

impl Drop for DatabaseFile {
    fn drop(&mut self) {
        for path in self.paths() {
            // What is not there need not be deleted.
            let _ = std::fs::remove_file(path);
        }
    }
}
