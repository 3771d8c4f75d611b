//! The lock that prevents a second cache from using a file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use super::error::file_error;
use super::private;
use crate::sql::StorageError;

/// The lock on the file of a cache, released on drop or when the process ends.
///
/// It is taken on a separate file, `<path>-lock`, which contains the process id for the error of the next cache. The
/// database itself is not opened for it: closing any handle of a file releases all of SQLite's own locks on that file.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, without waiting for it.
    ///
    /// # Errors
    ///
    /// Fails with [`StorageError::InUse`] if another cache has it.
    pub(super) fn take(path: &Path) -> Result<Self, StorageError> {
        let mut name = path.to_owned().into_os_string();
        name.push("-lock");
        let name = Path::new(&name);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let mut file = private::open(name, &mut options).map_err(|error| {
            // A refused file is named; that of another error is missing with the cache's folder.
            let is_refused = error.raw_os_error().is_none();
            file_error(if is_refused { name } else { path }, "opened", &error)
        })?;
        match file.try_lock() {
            Ok(()) => {
                // Only an error message needs the process id: a full disk is no reason to fail.
                let _ = note_owner(&mut file);
                Ok(Self { _file: file })
            }
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = file.read_to_string(&mut owner);
                Err(StorageError::InUse {
                    path: path.to_owned(),
                    process: owner.trim().parse().ok(),
                })
            }
            Err(TryLockError::Error(error)) => Err(file_error(path, "locked", &error)),
        }
    }
}

fn note_owner(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}
