//! The format of plain files.
//!
//! A file is gzip, whose checksum and length show whether it is complete. It contains the header as a line of JSON, and
//! then the objects, each preceded by its length.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use lariat_core::ResourceVersion;

use super::{Cold, Found, Header};
use crate::store::Snapshot;

/// A larger length means a damaged file; the API server accepts three megabytes.
const LARGEST_OBJECT: usize = 64 * 1024 * 1024;

/// Writes a plain file.
pub(super) fn write(path: &Path, header: &Header, objects: &Snapshot) -> Result<(), Cold> {
    replace(path, &unfinished(path), |file| {
        let file = write_objects(BufWriter::new(file), header, objects)?;
        Ok(into_file(file)?)
    })
}

/// Writes the header and the objects.
pub(super) fn write_objects<W: Write>(
    to: W,
    header: &Header,
    objects: &Snapshot,
) -> Result<W, Cold> {
    let mut file = GzEncoder::new(to, Compression::fast());
    serde_json::to_writer(&mut file, header).map_err(io::Error::from)?;
    file.write_all(b"\n")?;
    for object in objects.iter() {
        let json = object.json().unwrap_or_default();
        let length = u32::try_from(json.len()).map_err(|_| damaged("an object is too large"))?;
        file.write_all(&length.to_le_bytes())?;
        file.write_all(&json)?;
    }
    Ok(file.finish()?)
}

/// Creates a file atomically: until it is complete, it has another name.
pub(super) fn replace(
    path: &Path,
    unfinished: &Path,
    write: impl FnOnce(File) -> Result<File, Cold>,
) -> Result<(), Cold> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let written = create(unfinished)
        .map_err(Cold::from)
        .and_then(write)
        .and_then(|file| Ok(file.sync_all()?))
        .and_then(|()| Ok(fs::rename(unfinished, path)?));
    if written.is_err() {
        let _ = fs::remove_file(unfinished);
    }
    written
}

/// Returns the name of a plain file until it is complete.
pub(super) fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("part")
}

pub(super) fn into_file(file: BufWriter<File>) -> io::Result<File> {
    file.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Creates a file that only its owner can read, because it may contain secrets.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Removed first: an existing file may belong to another user, or be a link.
    let _ = fs::remove_file(path);
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Reads a plain file to its end, if its header is the expected one.
pub(super) fn read(path: &Path, expected: &Header) -> Result<Found, Cold> {
    let (found, _) = read_objects(open(path)?, expected)?;
    Ok(found)
}

pub(super) fn open(path: &Path) -> Result<BufReader<File>, Cold> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Cold::NoFile),
        file => Ok(BufReader::new(file?)),
    }
}

/// Reads the header and the objects; also returns the underlying reader.
pub(super) fn read_objects<R: BufRead>(from: R, expected: &Header) -> Result<(Found, R), Cold> {
    let mut file = BufReader::new(GzDecoder::new(from));
    let mut line = String::new();
    file.read_line(&mut line)
        .map_err(|error| damaged(&error.to_string()))?;
    let header: Header = serde_json::from_str(&line).map_err(|_| damaged("its beginning"))?;
    if header.cluster != expected.cluster {
        return Err(Cold::OtherCluster);
    }
    // Version and number of objects are results, not conditions.
    let comparable = Header {
        version: String::new(),
        objects: 0,
        ..header.clone()
    };
    if comparable != *expected {
        return Err(Cold::OtherOptions);
    }
    let mut objects = Vec::new();
    while let Some(object) = next_object(&mut file)? {
        objects.push(object);
    }
    if objects.len() != header.objects {
        return Err(damaged("objects are missing"));
    }
    let found = Found {
        version: ResourceVersion::new(&header.version),
        objects,
    };
    Ok((found, file.into_inner().into_inner()))
}

/// Reads the next object.
///
/// `None` at the end, which is reached only if the checksum is right.
fn next_object(file: &mut impl BufRead) -> Result<Option<Box<[u8]>>, Cold> {
    let failed = |error: io::Error| damaged(&error.to_string());
    if file.fill_buf().map_err(failed)?.is_empty() {
        return Ok(None);
    }
    let mut length = [0; 4];
    file.read_exact(&mut length).map_err(failed)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LARGEST_OBJECT {
        return Err(damaged("the length of an object"));
    }
    let mut object = vec![0; length];
    file.read_exact(&mut object).map_err(failed)?;
    Ok(Some(object.into()))
}

pub(super) fn damaged(detail: &str) -> Cold {
    Cold::Damaged(detail.to_owned())
}
