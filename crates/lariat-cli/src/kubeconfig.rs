//! Writing the kubeconfig.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file that only its owner can read, in one step: readers see the old one or the new one whole.
pub(crate) fn write(path: &Path, content: &str) -> io::Result<()> {
    let draft = draft_of(path)?;
    let written = create(&draft).and_then(|mut file| {
        file.write_all(content.as_bytes())?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&draft, path));
    if moved.is_err() {
        // What is left of it helps nobody; that it cannot be removed is not the error to tell.
        let _ = fs::remove_file(&draft);
    }
    moved
}

/// Returns a name beside the path, as only inside a folder a file is moved in one step.
fn draft_of(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut draft = std::ffi::OsString::from(".");
    draft.push(name);
    draft.push(format!(".{}", std::process::id()));
    Ok(path.with_file_name(draft))
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
