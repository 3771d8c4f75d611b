//! Reads clusters from kubeconfigs in a directory.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::{fs, time};
use tokio_util::sync::CancellationToken;

use crate::wanted::{Access, SourceId, WantedClusters};

/// The largest kubeconfig that is read, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// File name extensions that are not part of the cluster's name.
const ENDINGS: [&str; 3] = [".kubeconfig", ".yaml", ".yml"];

/// Reads the directory periodically until the token is cancelled.
pub(super) async fn follow(
    path: &Path,
    every: Duration,
    id: SourceId,
    wanted: &WantedClusters,
    until: &CancellationToken,
) {
    let mut following = Following {
        path,
        id,
        wanted,
        reported: ReportedErrors::default(),
        missing: BTreeSet::new(),
    };
    let mut ticks = time::interval(every);
    ticks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = until.cancelled() => return,
            _ = ticks.tick() => {}
        }
        following.read_once().await;
    }
}

/// A directory that is read again and again.
struct Following<'a> {
    path: &'a Path,
    id: SourceId,
    wanted: &'a WantedClusters,
    reported: ReportedErrors,
    /// The clusters whose files were missing at the last read.
    missing: BTreeSet<Arc<str>>,
}

impl Following<'_> {
    /// Reads the directory once.
    async fn read_once(&mut self) {
        let found = match files(self.path).await {
            Ok(found) => found,
            // The clusters stay: a directory that is being mounted again is unreadable for a moment.
            Err(error) => return self.reported.note(self.path, Some(&error)),
        };
        // Without its mount a directory is empty. The removal of its last cluster looks the same.
        let known = self.wanted.of(self.id);
        if found.is_empty && !known.is_empty() {
            let error = io::Error::other(
                "the directory is empty, so its clusters stay; leave a file such as .keep to remove the last one",
            );
            return self.reported.note(self.path, Some(&error));
        }
        self.reported.note(self.path, None);
        for (name, file) in &found.files {
            let taken = add_file(file, name, self.id, self.wanted).await;
            self.reported.note(file, taken.err().as_ref());
        }
        for other in &found.others {
            let error = io::Error::other("another file has the same cluster name");
            self.reported.note(other, Some(&error));
        }
        // Only a missing file removes its cluster, not one that cannot be read. The kubelet replaces links one by one,
        // so a file can be missing for a moment.
        let gone = known
            .into_iter()
            .filter(|name| !found.files.contains_key(name));
        let missing: BTreeSet<Arc<str>> = gone.collect();
        for name in missing.intersection(&self.missing) {
            self.wanted.remove(self.id, name);
        }
        self.missing = missing;
        let path = self.path;
        self.reported.0.retain(|known, _| {
            let mut all = found.files.values().chain(&found.others);
            known == path || all.any(|file| file == known)
        });
    }
}

/// The content of a directory.
struct Found {
    /// Whether it has no entry of any name.
    is_empty: bool,
    /// The kubeconfigs by cluster name.
    files: BTreeMap<Arc<str>, PathBuf>,
    /// The files whose cluster name is taken by another file.
    others: Vec<PathBuf>,
}

/// Adds the cluster of a file, or updates its access.
async fn add_file(
    file: &Path,
    name: &Arc<str>,
    id: SourceId,
    wanted: &WantedClusters,
) -> io::Result<()> {
    let text = read(file).await?;
    if wanted.set(id, name, Access::File(file.into(), text.into())) {
        return Ok(());
    }
    let taken = format!("another source has a cluster named {name:?}");
    Err(io::Error::other(taken))
}

/// Returns the kubeconfigs of a directory.
async fn files(path: &Path) -> io::Result<Found> {
    let mut paths = Vec::new();
    let mut entries = fs::read_dir(path).await?;
    while let Some(entry) = entries.next_entry().await? {
        paths.push(entry.path());
    }
    // So that of several files with the same cluster name the same one is always used.
    paths.sort();
    let is_empty = paths.is_empty();
    let (mut files, mut others) = (BTreeMap::new(), Vec::new());
    for file in paths {
        let name = file.file_name().and_then(|name| name.to_str());
        let Some(name) = name.and_then(cluster) else {
            continue;
        };
        // Follows links: the files of a mounted Secret are links.
        let is_file = match fs::metadata(&file).await {
            Ok(metadata) => metadata.is_file(),
            // A file that cannot be examined keeps its cluster.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        match files.entry(Arc::from(name)) {
            Entry::Vacant(entry) if is_file => {
                entry.insert(file);
            }
            Entry::Occupied(_) if is_file => others.push(file),
            _ => {}
        }
    }
    Ok(Found {
        is_empty,
        files,
        others,
    })
}

/// Returns the cluster name of a file; `None` if the file is no kubeconfig.
fn cluster(file: &str) -> Option<&str> {
    let mut endings = ENDINGS.iter();
    let name = endings.find_map(|ending| file.strip_suffix(ending));
    let name = name.unwrap_or(file);
    // A mounted Secret has hidden directories with the real files.
    (!file.starts_with('.') && !name.is_empty()).then_some(name)
}

/// Reads a file unless it is too large.
async fn read(file: &Path) -> io::Result<Vec<u8>> {
    // The directory may contain anything, and the content is kept in memory.
    if fs::metadata(file).await?.len() > LONGEST {
        let text = format!("the file is larger than {LONGEST} bytes");
        return Err(io::Error::other(text));
    }
    fs::read(file).await
}

/// The last error of each path, so that an error is logged once.
#[derive(Default)]
struct ReportedErrors(BTreeMap<PathBuf, String>);

impl ReportedErrors {
    /// Logs the error of a path if it is new, or that the path is readable again.
    fn note(&mut self, path: &Path, error: Option<&io::Error>) {
        let text = error.map(ToString::to_string);
        if self.0.get(path) == text.as_ref() {
            return;
        }
        let shown = path.display();
        match text {
            Some(error) => {
                tracing::warn!(path = %shown, error, "cannot read a kubeconfig or its directory");
                self.0.insert(path.to_owned(), error);
            }
            None => {
                tracing::info!(path = %shown, "the kubeconfig or directory is readable again");
                self.0.remove(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::cluster;

    #[test]
    fn the_name_of_the_file_is_that_of_the_cluster() {
        for (file, expected) in [
            ("eu-1", Some("eu-1")),
            ("eu-1.kubeconfig", Some("eu-1")),
            ("eu.1.yaml", Some("eu.1")),
            ("us.yml", Some("us")),
            (".yaml", None),
            ("..data", None),
            (".eu-1.kubeconfig.swp", None),
        ] {
            assert_eq!(cluster(file), expected, "{file}");
        }
    }
}
