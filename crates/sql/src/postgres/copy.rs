//! Rows in the binary format of `COPY`, for bulk writes.

use bytes::{BufMut, Bytes, BytesMut};

use super::text;
use crate::param::Arg;

/// The file header: a signature, no flags, no extension.
const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The number of bytes after which rows are sent.
const PART: usize = 256 * 1024;

/// Writes rows in parts.
pub(super) fn parts<'a>(rows: &'a [Vec<Arg<'a>>]) -> impl Iterator<Item = Bytes> + 'a {
    let mut rows = rows.iter();
    let mut part = BytesMut::from(HEADER.as_slice());
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        // In parts, so that a large batch is not in memory twice.
        while part.len() < PART {
            let Some(row) = rows.next() else {
                // The end of the file.
                part.put_i16(-1);
                is_over = true;
                break;
            };
            // A table has a few more columns than its schema has fields.
            part.put_i16(i16::try_from(row.len()).unwrap_or(i16::MAX));
            for value in row {
                put(value, &mut part);
            }
        }
        Some(part.split().freeze())
    })
}

fn put(value: &Arg<'_>, out: &mut BytesMut) {
    let mut bytes = |bytes: &[u8]| {
        // PostgreSQL accepts at most a gigabyte, and returns an error for more.
        out.put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        out.put_slice(bytes);
    };
    match value {
        Arg::Text(it) => bytes(text::write(it).as_bytes()),
        Arg::Integer(number) => bytes(&number.to_be_bytes()),
        Arg::Real(number) => bytes(&number.to_be_bytes()),
        Arg::Bytes(it) => bytes(it),
        Arg::Null => out.put_i32(-1),
    }
}
