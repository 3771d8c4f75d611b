//! Kubeconfigs in a directory.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::{fs, time};
use tokio_util::sync::CancellationToken;

use crate::wanted::{Access, SourceId, WantedClusters};

/// The longest kubeconfig that is read, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// Endings of file names that do not belong to the name of the cluster.
const ENDINGS: [&str; 3] = [".kubeconfig", ".yaml", ".yml"];

/// Reads the directory again and again, until the token is cancelled.
pub(super) async fn follow(
    path: &Path,
    every: Duration,
    id: SourceId,
    wanted: &WantedClusters,
    until: &CancellationToken,
) {
    let mut troubles = Troubles::default();
    let mut ticks = time::interval(every);
    ticks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = until.cancelled() => return,
            _ = ticks.tick() => {}
        }
        look(path, id, wanted, &mut troubles).await;
    }
}

/// Reads the directory once.
async fn look(path: &Path, id: SourceId, wanted: &WantedClusters, troubles: &mut Troubles) {
    let (files, others) = match files(path).await {
        Ok(found) => found,
        // Its clusters stay: a directory that is mounted anew is unreadable for a moment.
        Err(error) => return troubles.note(path, Some(&error)),
    };
    troubles.note(path, None);
    for (name, file) in &files {
        let taken = take(file, name, id, wanted).await;
        troubles.note(file, taken.err().as_ref());
    }
    for other in &others {
        let error = io::Error::other("another file has the name of its cluster");
        troubles.note(other, Some(&error));
    }
    wanted.retain(id, |name| files.contains_key(name));
    let is_there = |known: &PathBuf| files.values().chain(&others).any(|file| file == known);
    troubles
        .0
        .retain(|known, _| known == path || is_there(known));
}

/// Adds the cluster of a file.
async fn take(
    file: &Path,
    name: &Arc<str>,
    id: SourceId,
    wanted: &WantedClusters,
) -> io::Result<()> {
    let text = read(file).await?;
    if wanted.set(id, name, Access::File(file.into(), text.into())) {
        return Ok(());
    }
    let taken = format!("another source has the cluster {name:?}");
    Err(io::Error::other(taken))
}

/// Returns the kubeconfigs of a directory with the names of their clusters, and those whose name is taken.
async fn files(path: &Path) -> io::Result<(BTreeMap<Arc<str>, PathBuf>, Vec<PathBuf>)> {
    let mut paths = Vec::new();
    let mut entries = fs::read_dir(path).await?;
    while let Some(entry) = entries.next_entry().await? {
        paths.push(entry.path());
    }
    paths.sort();
    let (mut files, mut others) = (BTreeMap::new(), Vec::new());
    for file in paths {
        let name = file.file_name().and_then(|name| name.to_str());
        let Some(name) = name.and_then(cluster) else {
            continue;
        };
        // The files of a mounted Secret are links.
        let is_file = match fs::metadata(&file).await {
            Ok(metadata) => metadata.is_file(),
            // What cannot be looked at keeps its cluster.
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
    Ok((files, others))
}

/// Returns the name of the cluster of a file; none if it is no kubeconfig.
fn cluster(file: &str) -> Option<&str> {
    let mut endings = ENDINGS.iter();
    let name = endings.find_map(|ending| file.strip_suffix(ending));
    let name = name.unwrap_or(file);
    (!file.starts_with('.') && !name.is_empty()).then_some(name)
}

async fn read(file: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(file).await?.len() > LONGEST {
        let text = format!("it is longer than {LONGEST} bytes");
        return Err(io::Error::other(text));
    }
    fs::read(file).await
}

/// What could not be read, so that each trouble is logged once.
#[derive(Default)]
struct Troubles(BTreeMap<PathBuf, String>);

impl Troubles {
    fn note(&mut self, path: &Path, error: Option<&io::Error>) {
        let text = error.map(ToString::to_string);
        if self.0.get(path) == text.as_ref() {
            return;
        }
        let shown = path.display();
        match text {
            Some(error) => {
                tracing::warn!(path = %shown, error, "a kubeconfig or its directory cannot be used");
                self.0.insert(path.to_owned(), error);
            }
            None => {
                tracing::info!(path = %shown, "it can be used again");
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
