//! Files that belong to this user alone.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Opens a file that belongs to the user of this process, and is no link; a new one is readable for its owner only.
///
/// In a folder that others may write, a link would lead to a file of another program, and the owner of a file that was
/// there before could read the cache.
pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // A pipe is refused below, and must not wait for its other end before.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = options.mode(0o600).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => is_link(),
        _ => error,
    })?;
    vet(&file.metadata()?)?;
    Ok(file)
}

/// Checks a file as [`open`] does, without opening it; it may be missing.
pub(super) fn check(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => Err(is_link()),
        Ok(metadata) => vet(&metadata),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Refuses what is not a regular file of this user.
fn vet(metadata: &Metadata) -> io::Result<()> {
    if !metadata.is_file() {
        return Err(refuse("it is not a regular file: use another path"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(refuse(
            "it belongs to another user: remove it, or use another path",
        ));
    }
    Ok(())
}

/// Takes the permissions of others away.
pub(super) fn restrict(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o600))
}

fn is_link() -> io::Error {
    refuse("it is a symbolic link: name the file itself")
}

fn refuse(why: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{chown, symlink};
    use std::path::PathBuf;

    use super::*;

    /// A folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let name = format!("lariat-private-{:016x}", fastrand::u64(..));
            let folder = std::env::temp_dir().join(name);
            fs::create_dir(&folder).unwrap();
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn open_to_write(path: &Path) -> io::Result<File> {
        open(path, OpenOptions::new().create(true).append(true))
    }

    #[test]
    fn symbolic_link_is_not_followed() {
        let folder = Folder::new();
        let (target, link) = (folder.0.join("target"), folder.0.join("link"));
        fs::write(&target, "content").unwrap();
        symlink(&target, &link).unwrap();
        let error = open_to_write(&link).unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "content");
        let dangling = folder.0.join("dangling");
        symlink(folder.0.join("missing"), &dangling).unwrap();
        open_to_write(&dangling).unwrap_err();
        assert!(!folder.0.join("missing").exists());
    }

    #[test]
    fn file_is_private_whatever_its_mode_was() {
        let folder = Folder::new();
        let path = folder.0.join("cache");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        restrict(&open_to_write(&path).unwrap()).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn file_of_another_user_is_refused() {
        let folder = Folder::new();
        let path = folder.0.join("cache");
        fs::write(&path, "").unwrap();
        // Only root can give a file away.
        if chown(&path, Some(65_534), None).is_ok() {
            let error = open_to_write(&path).unwrap_err().to_string();
            assert!(error.contains("belongs to another user"), "{error}");
        }
    }
}
