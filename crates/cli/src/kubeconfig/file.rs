//! Reading and replacing the file.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most symlinks in a chain, as in Linux.
const MOST_LINKS: usize = 40;

/// How long, and how often, to wait for another program that changes the file.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSES: usize = 100;

/// Follows symlinks to the file they lead to, which need not be there.
pub(super) fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let is_link = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
        if !is_link {
            return Ok(path);
        }
        let link = fs::read_link(&path)?;
        // A relative link counts from its own folder; `join` takes an absolute one as it is.
        path = path.parent().unwrap_or(Path::new("")).join(link);
    }
    Err(io::Error::other("too many symlinks"))
}

/// Reads a file, if there is one.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        // Reading a pipe would consume its content, and it could not be replaced.
        Ok(found) if !found.is_file() => Err(io::Error::other("it is no regular file")),
        Ok(_) => fs::read(path).map(Some),
    }
}

/// Replaces a file atomically, readable by its owner only.
pub(super) fn write(path: &Path, content: &str) -> io::Result<()> {
    let draft = beside(path, |name| format!(".{name}.{}", std::process::id()))?;
    let written = create(&draft).and_then(|mut file| {
        keep_owner(path, &file);
        file.write_all(content.as_bytes())?;
        // Before the rename: after a power failure the new name must not lead to an empty file.
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&draft, path));
    if moved.is_err() {
        // A failed removal of the temporary file is not the error to report.
        let _ = fs::remove_file(&draft);
    }
    moved
}

/// Gives a new file the owner of the old one, which differs if root writes it.
#[cfg(unix)]
fn keep_owner(old: &Path, new: &File) {
    use std::os::unix::fs::{MetadataExt, fchown};

    if let Ok(old) = fs::metadata(old) {
        // Only root may; others are the owner already, or could not have read it.
        let _ = fchown(new, Some(old.uid()), Some(old.gid()));
    }
}

#[cfg(not(unix))]
fn keep_owner(_old: &Path, _new: &File) {}

/// The lock of a file as in client-go: a file beside it that only one program can create.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
}

impl Lock {
    /// Waits until no other program changes the file.
    pub(super) async fn acquire(file: &Path) -> io::Result<Self> {
        let path = beside(file, |name| format!("{name}.lock"))?;
        for _ in 0..PAUSES {
            match create(&path) {
                Ok(_) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(format!(
            "another program changes it, or has left {} behind, which can be deleted then",
            path.display()
        )))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The next program that waits for the lock reports it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns a path in the same folder, since only there a rename is atomic.
fn beside(path: &Path, name: impl FnOnce(&str) -> String) -> io::Result<PathBuf> {
    let file_name: OsString = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.into();
    let own = file_name
        .into_string()
        .map_err(|_| io::Error::other("its name is not UTF-8"))?;
    Ok(path.with_file_name(name(&own)))
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // `create_new` fails if there is a file, which makes the lock exclusive, and does not follow another user's
    // symlink.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of the test's own, which goes with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("lariat-lock-{}", fastrand::u64(..)));
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_program_at_a_time_changes_a_file() {
        let folder = Folder::new();
        let file = folder.0.join("config");
        let first = Lock::acquire(&file).await.unwrap();
        let error = Lock::acquire(&file).await.unwrap_err().to_string();
        let lock = folder.0.join("config.lock");
        let expected = format!(
            "another program changes it, or has left {} behind, which can be deleted then",
            lock.display()
        );
        assert_eq!(error, expected);
        let ended = async {
            tokio::time::sleep(PAUSE).await;
            drop(first);
        };
        let (second, ()) = tokio::join!(Lock::acquire(&file), ended);
        drop(second.unwrap());
        assert!(!lock.exists());
    }
}
