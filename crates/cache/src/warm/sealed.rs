//! The format of sealed files.
//!
//! A file has a line that identifies the format, the keyring preceded by its length, and the content of a plain file as
//! a sealed stream.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use lariat_seal::{Context, Keyring};

use super::file::{self, damaged};
use super::{Cold, Found, Header};
use crate::store::Snapshot;

const FORMAT: [u8; 16] = *b"lariat sealed 1\n";

/// A length above this means a damaged file: a keyring has one data key, and its wrapped form.
const LARGEST_KEYRING: usize = 128 * 1024;

/// Writes a file with a keyring that only the wrapping key opens.
pub(super) fn write(
    path: &Path,
    keyring: &Keyring,
    context: &Context,
    header: &Header,
    objects: &Snapshot,
) -> Result<(), Cold> {
    // Another name than that of an incomplete plain file, which is removed at any time.
    let unfinished = path.with_extension("sealed-part");
    file::replace(path, &unfinished, |file| {
        let mut file = BufWriter::new(file);
        let stored = keyring.stored();
        let length = u32::try_from(stored.len()).map_err(io::Error::other)?;
        file.write_all(&FORMAT)?;
        file.write_all(&length.to_le_bytes())?;
        file.write_all(stored)?;
        let stream = keyring.seal_stream(context, file)?;
        let written = file::write_objects(stream, header, objects)?;
        Ok(file::into_file(written.finish()?)?)
    })
}

/// Reads the keyring of a file; the returned reader continues after it.
pub(super) fn read_head(path: &Path) -> Result<(BufReader<File>, Vec<u8>), Cold> {
    let mut file = file::open(path)?;
    let failed = |error: io::Error| damaged(&error.to_string());
    let (mut format, mut length) = ([0; FORMAT.len()], [0; 4]);
    file.read_exact(&mut format).map_err(failed)?;
    if format != FORMAT {
        return Err(damaged("its beginning"));
    }
    file.read_exact(&mut length).map_err(failed)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LARGEST_KEYRING {
        return Err(damaged("the length of its keyring"));
    }
    let mut stored = vec![0; length];
    file.read_exact(&mut stored).map_err(failed)?;
    Ok((file, stored))
}

/// Reads a file to its end, if its header is the expected one.
pub(super) fn read(
    file: BufReader<File>,
    keyring: &Keyring,
    context: &Context,
    expected: &Header,
) -> Result<Found, Cold> {
    let stream = BufReader::new(keyring.open_stream(context, file)?);
    let (found, mut rest) = file::read_objects(stream, expected)?;
    // Only the end of the stream shows that it is complete.
    match io::copy(&mut rest, &mut io::sink()) {
        Ok(0) => Ok(found),
        Ok(_) => Err(damaged("there is more behind the objects")),
        Err(error) => Err(damaged(&error.to_string())),
    }
}
