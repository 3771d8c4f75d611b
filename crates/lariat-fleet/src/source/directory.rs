//! Kubeconfigs in a directory.

use std::collections::BTreeMap;
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
    let files = match files(path).await {
        Ok(files) => files,
        // Its clusters stay: a directory that is mounted anew is unreadable for a moment.
        Err(error) => return troubles.note(path, Some(&error)),
    };
    troubles.note(path, None);
    for (name, file) in &files {
        let text = match read(file).await {
            Ok(text) => text,
            Err(error) => {
                troubles.note(file, Some(&error));
                continue;
            }
        };
        troubles.note(file, None);
        let access = Access::File(file.as_path().into(), text.into());
        if !wanted.set(id, name, access) {
            let taken = io::Error::other(format!("another source has the cluster {name:?}"));
            troubles.note(file, Some(&taken));
        }
    }
    wanted.retain(id, |name| files.contains_key(name));
    troubles
        .0
        .retain(|known, _| known == path || files.values().any(|file| file == known));
}

/// Returns the kubeconfigs of a directory with the names of their clusters.
async fn files(path: &Path) -> io::Result<BTreeMap<Arc<str>, PathBuf>> {
    let mut files = BTreeMap::new();
    let mut entries = fs::read_dir(path).await?;
    while let Some(entry) = entries.next_entry().await? {
        let file = entry.path();
        // The files of a mounted Secret are links.
        let is_file = fs::metadata(&file).await.is_ok_and(|it| it.is_file());
        if let Some(name) = entry
            .file_name()
            .to_str()
            .and_then(cluster)
            .filter(|_| is_file)
        {
            files.insert(name.into(), file);
        }
    }
    Ok(files)
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
